"""What a play's parent process does once for its workers, on a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.build import new_vm
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import open_run
from vnuma.engine.access.secrets import PRIVATE_FILE_VARIABLE, Private
from vnuma.engine.actions import steps
from vnuma.errors import StoreError
from vnuma.store import runs
from vnuma.store.open import open_store
from vnuma.store.rows import Run, StopRequest

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


def test_a_store_that_cannot_be_used_is_left_to_the_step_that_needs_it(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preparing says nothing; the step says what is wrong."""
    (tmp_path / "vnuma.db").mkdir()
    _play_of("quick.1", url, tmp_path, monkeypatch)

    steps.prepare_workers()

    with pytest.raises(StoreError):
        open_run("quick.1")
