"""What a play's parent process does once for its workers, on a real store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.sql.compiler import SQLCompiler

from tests.store.build import new_vm
from tests.store.build import samples as some_samples
from vnuma.engine.access.secrets import PRIVATE_FILE_VARIABLE, Private
from vnuma.engine.lease.context import open_run, vm_of_run
from vnuma.engine.run import worker_warmup
from vnuma.engine.run.claim import claim_within
from vnuma.errors import StoreError
from vnuma.store import attempts, audit, facts, runs, samples
from vnuma.store.open import open_store
from vnuma.store.rows import Claim, Run
from vnuma.store.states import Outcome, StopRequest

STUDY = Path(__file__).resolve().parents[3] / "studies" / "quick.yml"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of a store that is not there yet."""
    return f"sqlite:///{tmp_path / 'vnuma.db'}"


def _play_of(run: str, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = Private(url, str(folder), run, {}, {"sql16": 1}).write(folder)
    monkeypatch.setenv(PRIVATE_FILE_VARIABLE, str(private))


def _run_with_a_vm(url: str, arms: int = 0) -> Run:
    store = open_store(url)
    with store.write() as connection:
        study = runs.save_study(connection, "quick", STUDY.read_text(encoding="utf-8"))
        run = runs.create_run(connection, study, seed=7)
    new_vm(store, run, arms=arms)
    return run


def test_what_the_parent_has_opened_and_parsed_serves_every_worker(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same open store and the same study come back, and what others write is seen all the same."""
    run = _run_with_a_vm(url)
    _play_of(run.name, url, tmp_path, monkeypatch)

    worker_warmup.prepare()
    first = open_run(run.name)
    with open_store(url).write() as connection:
        runs.request_stop(connection, run.id, StopRequest.NOW)
    second = open_run(run.name)

    assert second[0] is first[0]
    assert second[2] is first[2]
    assert second[1].stop_requested


def test_a_store_that_cannot_be_used_is_left_to_the_step_that_needs_it(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preparing says nothing; the step says what is wrong."""
    (tmp_path / "vnuma.db").mkdir()
    _play_of("quick.1", url, tmp_path, monkeypatch)

    worker_warmup.prepare()

    with pytest.raises(StoreError, match="is a folder"):
        open_run("quick.1")


def test_a_cell_is_rehearsed_and_nothing_of_it_is_left(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker then writes, its parent has compiled; the run's one cell is still to be claimed."""
    run = _run_with_a_vm(url, arms=1)
    _play_of(run.name, url, tmp_path, monkeypatch)

    worker_warmup.prepare()
    store, _, study = open_run(run.name)
    compiled = _compiled(monkeypatch)
    vm = vm_of_run(store, run, "sql16")
    with store.write() as connection:
        before = audit.last_id(connection), facts.facts_of_run(connection, run.id, "rehearsal")
        claimed = claim_within(connection, run, study, vm, 1)
        assert isinstance(claimed, Claim)
        attempts.set_step(connection, claimed.attempt_id, 1, "measure")
        facts.add_attempt_facts(connection, claimed.attempt_id, 1, "counters", {"vm": 1, "host": 2})
        samples.add_samples(connection, claimed.attempt_id, 1, some_samples(1))
        attempts.finish(connection, claimed.attempt_id, 1, Outcome.VALID)

    assert before == (0, ())
    assert claimed.number == 1
    assert compiled == []


def _compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that SQLAlchemy compiles from now on."""
    found: list[str] = []
    genuine = SQLCompiler.__init__

    def noted(self: SQLCompiler, *args: Any, **kwargs: Any) -> None:
        genuine(self, *args, **kwargs)
        found.append(str(self))

    monkeypatch.setattr(SQLCompiler, "__init__", noted)
    return found
