"""Answers of SQL Server that `vnuma doctor --record` recorded: make lab-learn FILE=contact.yml adds them."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from vnuma.contract.sql import explain
from vnuma.contract.suite import SEEN_FOR_REAL, Judged, Verdict, ask, beliefs
from vnuma.sqlserver.instance.record import Event

FILES = sorted((Path(__file__).parents[1] / "data" / "recorded").glob("*.yml"))


class RecordedSql:
    """Gives a belief what was recorded, and skips it where nothing was."""

    def __init__(self, part: dict[str, Any]) -> None:
        self._part, self._timed = part, False
        self.major = int(part["version"].partition(".")[0])

    def events(self, batch: str) -> list[Event]:
        if batch.startswith("SET STATISTICS TIME"):
            self._timed = batch.endswith("ON")
            return []
        found = self._part["answers"].get(batch) if self._timed else None
        return [Event(*one) for one in found] if found else _not_recorded()

    def kinds(self, view: str) -> dict[str, str]:
        found: dict[str, str] = self._part["columns"][view]
        return found

    def __getattr__(self, _: str) -> NoReturn:
        _not_recorded()


def _not_recorded() -> NoReturn:
    pytest.skip("not recorded")


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_recorded_answers_of_sql_server_support_the_beliefs(file: Path) -> None:
    """None differs; a real server's answers support only what the page names."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    judged: list[Judged] = []
    ask("sql", lambda: nullcontext(RecordedSql(document["sql_server"])), explain, judged)
    held = {one.id for one in judged if one.verdict is Verdict.HELD}

    assert [one for one in judged if one.verdict is Verdict.DIFFERS] == []
    assert {"time.parse_comes_first", "time.a_call_sends_its_own", "view.dm_os_nodes"} <= held
    assert document.get("simulated") or held <= SEEN_FOR_REAL


def test_there_is_a_recording() -> None:
    """The lab's own at least: the form stays readable."""
    assert FILES


def test_options_of_somebodys_own_tests_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTEST_ADDOPTS in the environment neither changes nor breaks the contract, and stays as it is."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    beliefs.cache_clear()

    assert len(beliefs("sql")) > len(beliefs("on")) > 0
    assert os.environ["PYTEST_ADDOPTS"] == "--no-such-option"
