"""`vnuma lab fault`: a running lab is made to fail, and made well again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vnuma import lab
from vnuma.cli.lab import app
from vnuma.errors import EnvironmentProblem, InputError, UsageError, VnumaError

runner = CliRunner()


@pytest.fixture
def running(tmp_path: Path, lab_binary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[lab.LabState]:
    """A lab of the user's own, stopped after the test."""
    monkeypatch.setenv("VNUMA_LAB", str(lab_binary))
    monkeypatch.setenv("VNUMA_LAB_STATE", str(tmp_path / "state"))
    yield lab.up()
    lab.down()


def test_faults_are_added_listed_and_taken_back(running: lab.LabState) -> None:
    """What was added is listed with its fields, until it is cleared."""
    added = runner.invoke(
        app, ["fault", "drop_mid_result", "--vm", "sql16", "--set", "rows=50", "--times", "0"]
    )
    runner.invoke(app, ["fault", "vcenter_restart", "--boot", "9", "--set", "seconds=0.5"])

    assert added.exit_code == 0, added.output
    lines = runner.invoke(app, ["fault"]).output.splitlines()
    assert lines[0].split()[:5] == ["1", "drop_mid_result", "vm=sql16", "times=0", "rows=50"]
    assert "seconds=0.5" in lines[1]
    assert runner.invoke(app, ["fault", "--clear"]).output == "2 faults cleared.\n"
    assert runner.invoke(app, ["fault"]).output == "No fault is set.\n"


@pytest.mark.parametrize(
    ("words", "why", "kind"),
    [
        (["gremlins"], "want one of", InputError),
        (["slow"], "needs factor", InputError),
        (["tools_never", "--vm", "nobody"], "no such VM", InputError),
        (["slow", "--set", "factor"], "not KEY=VALUE", UsageError),
        (["slow", "--clear"], "takes no kind", UsageError),
    ],
)
def test_a_fault_that_cannot_be_played_is_refused_with_the_reason(
    running: lab.LabState, words: list[str], why: str, kind: type[VnumaError]
) -> None:
    """The lab's own words reach the user, and nothing is set."""
    refused = runner.invoke(app, ["fault", *words])

    assert isinstance(refused.exception, kind)
    assert why in str(refused.exception)
    assert lab.faults.listed(running) == []


def test_without_a_lab_there_is_nothing_to_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to start one."""
    monkeypatch.setenv("VNUMA_LAB_STATE", str(tmp_path / "none"))

    assert isinstance(runner.invoke(app, ["fault"]).exception, EnvironmentProblem)


@pytest.mark.parametrize(
    ("scenario", "study"),
    [("esxi8-default", "demo"), ("esxi7-default", "quick"), ("chang2005-null", "chang2005")],
)
def test_the_next_command_suits_the_scenario(
    tmp_path: Path, lab_binary: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, study: str
) -> None:
    """The study of a publication, else one whose arms that release of ESXi tells apart."""
    monkeypatch.setenv("VNUMA_LAB", str(lab_binary))
    monkeypatch.setenv("VNUMA_LAB_STATE", str(tmp_path / "state"))
    try:
        assert f"studies/{study}.yml" in runner.invoke(app, ["up", scenario]).output.splitlines()[-1]
    finally:
        lab.down()
