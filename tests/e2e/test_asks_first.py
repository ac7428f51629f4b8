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
        said = " ".join(on_terminal(80, "run", STUDY, typed="n\n"))
        runs = status("--store", f"sqlite:///{vnuma_home / 'vnuma.db'}")["runs"]
    finally:
        vnuma("lab", "down")

    assert all(word in said for word in ("SIMULATED", "sql16", "numCoresPerSocket", "Restored", "Start?"))
    assert runs == []
