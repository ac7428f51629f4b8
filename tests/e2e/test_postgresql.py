"""A run whose store is PostgreSQL, as several controllers and AWX need it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import func, select

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import command, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.postgresql import Cluster, find_binaries, start
from tests.support.site import write_inventory, write_study
from tests.support.supervised import Struck
from vnuma.engine.access.places import home_folder
from vnuma.errors import InputError, StoreError
from vnuma.store import cells, runs, tables
from vnuma.store.open import open_store
from vnuma.store.rows import CellState
from vnuma.store.samples import iter_samples


@dataclass
class Restarted:
    """A run of a small study on a server of its own, which `shut_down` and `start_again` end and start."""

    server: Cluster
    lab: LabHandle
    folder: Path

    def __post_init__(self) -> None:
        self.store = self.server.new_store()
        self.before = settings_now(self.lab)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The run, whose end is awaited."""
        study, inventory = write_study(self.folder), write_inventory(self.folder, self.lab)
        with (
            (self.folder / "said").open("w") as told,
            subprocess.Popen(
                command("run", study, "-i", inventory, "--yes"),
                env={**os.environ, "VNUMA_STORE": self.store},
                stdout=subprocess.DEVNULL,
                stderr=told,
            ) as run,
        ):
            yield run
            run.wait(timeout=300)

    def restart(self) -> None:
        """Down, every session ended, and up again."""
        self.server.shut_down()
        self.server.start_again()

    @property
    def said(self) -> str:
        """What the run said."""
        return (self.folder / "said").read_text(encoding="utf-8")

    @property
    def vm_is_as_before(self) -> bool:
        """Whether every setting is the baseline's."""
        return settings_now(self.lab) == self.before


@pytest.fixture
def restarted(tmp_path: Path, lab: LabFactory) -> Iterator[Restarted]:
    """A server that only this test uses."""
    server = start(find_binaries())
    try:
        yield Restarted(server, lab(), tmp_path)
    finally:
        server.stop()


@pytest.mark.long
def test_a_server_that_restarts_in_the_middle_costs_no_sample(restarted: Restarted) -> None:
    """Down and up again, twice: a valid cell has all its samples once, others none; the VM is back.

    Where it was the run's own unit of work that broke, the run ends early and says that the store was away.
    """
    with restarted.running() as run:
        for number in (1, 3):
            wait_for_samples(restarted.store, number, run)
            restarted.restart()

    with open_store(restarted.store).read() as connection:
        run_id = runs.get_run(connection, "small.1").id
        states = [cell.state for cell in cells.cells_of_run(connection, run_id)]
        kept = Counter(
            one.attempt_id for one in iter_samples(connection, run_id) if one.attempt_outcome == "valid"
        )
    assert run.returncode in ({0, 9} if states == ["valid", "valid"] else {9}), restarted.said
    assert run.returncode == 0 or "vnuma run --resume" in restarted.said, restarted.said
    assert len(kept) == states.count(CellState.VALID)
    assert len(set(kept.values())) <= 1, kept
    assert restarted.vm_is_as_before


def wait_for_samples(url: str, number: int, run: subprocess.Popen[bytes]) -> None:
    """Return when the store has so many, or the run has ended."""
    store, until = open_store(url), time.monotonic() + 300
    while time.monotonic() < until and run.poll() is None:
        with store.read() as connection:
            if (connection.scalar(select(func.count()).select_from(tables.sample)) or 0) >= number:
                return
    assert run.poll() is not None, f"the run made no {number} samples"


def test_a_store_on_a_server_that_takes_no_more_writes_leaves_the_vm_as_it_was(
    tmp_path: Path, lab: LabFactory, postgresql: Cluster
) -> None:
    """Its disk is full, or another server has taken over: exit code 9, and the VM is back."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running, url=postgresql.new_store())

    def no_more_writes() -> None:
        with psycopg.connect(steps.url.replace("+psycopg", ""), autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = %s AND pid <> pg_backend_pid()",
                [name],
            )

    ended = Struck(running, no_more_writes).run(steps)

    assert settings_now(running) == before
    assert isinstance(ended.worst, StoreError), ended.problems


def test_a_dropped_database_is_no_proof_that_every_vm_is_at_its_baseline(
    tmp_path: Path, lab: LabFactory, postgresql: Cluster
) -> None:
    """The audit log in vnuma's home names the VM, and is the way back."""
    running = lab()
    before = settings_now(running)
    steps = Steps.shaped(tmp_path / "a", running, url=postgresql.new_store())
    store = ("--store", steps.url)
    _drop_and_make_anew(steps.url)

    lost = vnuma_here("restore", *store)
    (log,) = home_folder().glob("*.audit.jsonl")
    done = vnuma_here("restore", *store, "--from-audit", log, "-i", steps.home / "hosts.yml")

    assert lost.code == 7, lost.text
    assert done.code == 0, done.text
    assert settings_now(running) == before


@pytest.mark.long
def test_a_log_of_an_earlier_version_is_refused_and_the_databases_own_is_the_way_back(
    tmp_path: Path, lab: LabFactory, postgresql: Cluster
) -> None:
    """One file for all databases, whose lines have no outcome, next to the database's own."""
    running = lab()
    before = settings_now(running)
    steps = Steps.shaped(tmp_path / "a", running, url=postgresql.new_store())
    left = settings_now(running)
    (log,) = home_folder().glob("*.audit.jsonl")
    earlier = home_folder() / "vnuma.audit.jsonl"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        del line["outcome"], line["home"]
    earlier.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    _drop_and_make_anew(steps.url)
    way = ("restore", "--store", steps.url, "-i", steps.home / "hosts.yml", "--from-audit")

    refused = vnuma_here(*way, earlier)
    untouched = settings_now(running)
    done = vnuma_here(*way, log)

    assert refused.code == InputError.exit_code, refused.text
    assert untouched == left
    assert done.code == 0, done.text
    assert settings_now(running) == before


def _drop_and_make_anew(url: str) -> None:
    place = url.replace("+psycopg", "")
    with psycopg.connect(place) as connection:
        name = connection.info.dbname
    with psycopg.connect(place, dbname="postgres", autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
