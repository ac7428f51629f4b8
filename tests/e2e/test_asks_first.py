"""`vnuma run` on a terminal shows what will change, and begins only with a yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import on_terminal, status, vnuma

STUDY = Path(__file__).parents[2] / "studies" / "quick.yml"


def test_a_no_changes_nothing(vnuma_home: Path, lab_binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """VM, power-cycles, settings, time and the way back are shown; no run is stored."""
    monkeypatch.setenv("VNUMA_LAB", str(lab_binary))
    assert vnuma("lab", "up").code == 0
    try:
        said = "\n".join(on_terminal(80, "run", STUDY, typed="n\n"))
        runs = status("--store", f"sqlite:///{vnuma_home / 'vnuma.db'}")["runs"]
    finally:
        vnuma("lab", "down")

    for part in (
        "SIMULATED",
        "sql16",
        "48 power-cycles",
        "numCoresPerSocket",
        "Time",
        "Restored",
        "127.0.0.1:",
        "Start?",
    ):
        assert part in said
    assert runs == []
