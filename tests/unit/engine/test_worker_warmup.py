"""What a play's parent process does once for its workers, on a real store."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.build import Leased, claim, new_vm, samples
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import open_run
from vnuma.engine.access.secrets import PRIVATE_FILE_VARIABLE, Private
from vnuma.engine.actions import steps
from vnuma.errors import StoreError
from vnuma.store import attempts, facts, leases, runs
from vnuma.store import samples as sample_rows
from vnuma.store.open import open_store
from vnuma.store.rows import Outcome, Run, StopRequest

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

    parse_study.cache_clear()
    steps.prepare_workers()
    parsed = parse_study.cache_info().misses
    first = open_run(run.name)
    with open_store(url).write() as connection:
        runs.request_stop(connection, run.id, StopRequest.NOW)
    second = open_run(run.name)

    assert second[0] is first[0]
    assert (parsed, parse_study.cache_info().misses) == (1, 1)
    assert second[1].stop_requested


def _rows(url: str) -> list[str]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return list(connection.iterdump())


def test_a_rehearsed_cell_leaves_no_trace(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither attempt nor fact, sample or state of a cell; an attempt that a dead play left open stays so."""
    run = _run_with_a_vm(url, arms=2)
    store = open_store(url)
    with store.read() as connection:
        vm = leases.vm_named(connection, run.id, "sql16")
    assert vm
    claim(store, Leased(run, vm, 1))
    before = _rows(url)
    _play_of(run.name, url, tmp_path, monkeypatch)

    steps.prepare_workers()

    assert _rows(url) == before


def test_workers_compile_no_statement_of_a_rehearsed_cell(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Their claim, the parts of an attempt, and its end are in the cache that they inherit."""
    run = _run_with_a_vm(url, arms=2)
    _play_of(run.name, url, tmp_path, monkeypatch)
    caplog.set_level(logging.INFO, "sqlalchemy.engine")
    steps.prepare_workers()
    store = open_run(run.name)[0]
    with store.read() as connection:
        vm = leases.vm_named(connection, run.id, "sql16")
    assert vm
    caplog.clear()

    claimed = claim(store, Leased(run, vm, 1))
    own = claimed.id, claimed.token
    with store.write() as connection:
        attempts.set_step(connection, *own, "measure")
        facts.add_attempt_facts(connection, *own, {"linux": {"boot": "1", "uptime": 7}})
        sample_rows.add_samples(connection, *own, samples(1))
        attempts.finish(connection, *own, Outcome.VALID)

    assert "[cached since" in caplog.text
    assert "[generated in" not in caplog.text


def test_a_store_that_cannot_be_used_is_left_to_the_step_that_needs_it(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preparing says nothing; the step says what is wrong."""
    (tmp_path / "vnuma.db").mkdir()
    _play_of("quick.1", url, tmp_path, monkeypatch)

    steps.prepare_workers()

    with pytest.raises(StoreError):
        open_run("quick.1")
