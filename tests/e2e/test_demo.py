"""`vnuma demo`, which README's second command ends with: a lab, a study, the report, nothing left."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.support.cli import vnuma, vnuma_here
from vnuma import assets, lab
from vnuma.cli import run
from vnuma.errors import Interrupted

STUDY = """
name: small
vm: sql16
vcpus: 16
reference: 1x16
arms: [1x16, 8x2]
design: {blocks: 1, a_a: false, iterations: 1, warmups: 0}
workload: {name: cross_join, sizes: [20], forms: [client]}
dataset: {transaction_history_rows: 200, sales_order_detail_rows: 200}
"""


def test_the_demo_ends_with_a_report_and_without_a_lab(tmp_path: Path) -> None:
    """A smaller study than README's, by the same command."""
    study = tmp_path / "small.yml"
    study.write_text(STUDY, encoding="utf-8")

    ran = vnuma("demo", "--study", study, cwd=tmp_path)

    assert ran.code == 0, ran.text
    assert len([*(tmp_path / "reports").glob("*.simulated.html")]) == 1
    assert vnuma("lab", "status").code != 0


def test_a_second_demo_leaves_the_lab_of_the_first_alone() -> None:
    """There is one lab for demos, and the second one would stop it."""
    labs = assets.home() / "demo-lab"
    running = lab.up("null", labs)
    try:
        with (labs / "demo.lock").open("w", encoding="utf-8") as first:
            fcntl.flock(first, fcntl.LOCK_EX)
            second = vnuma_here("demo")

        assert second.code == 4, second.text
        assert lab.status(labs) == running
    finally:
        lab.down(labs)


def test_a_study_that_cannot_be_read_starts_no_lab(tmp_path: Path) -> None:
    """It is refused first."""
    refused = vnuma_here("demo", "--study", tmp_path / "none.yml")

    assert refused.code == 3, refused.text
    assert not (assets.home() / "demo-lab").exists()


def test_a_stopped_demo_does_not_point_to_a_run_whose_lab_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is continued on its own VMs, and these ended with the demo."""

    def stopped(*_: object, **__: object) -> None:
        raise Interrupted("Stopped after 1 of 2 cells.", fix="vnuma run --resume small.1")

    monkeypatch.setattr(run, "run", stopped)
    monkeypatch.setenv("VNUMA_LAB_STATE", "")

    ended = vnuma_here("demo")

    assert (ended.code, "--resume" in ended.text) == (Interrupted.exit_code, False)
