"""`vnuma lab down` while a run measures on the lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.build import study_text
from tests.support.cli import vnuma
from vnuma.engine.lease.supervision import claim_supervision
from vnuma.store import runs
from vnuma.store.open import default_url, open_store


def test_a_lab_that_a_run_needs_is_not_stopped_unasked(
    vnuma_home: Path, lab_binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is named, with three ways out; --yes stops the lab all the same."""
    monkeypatch.setenv("VNUMA_LAB", str(lab_binary))
    store = open_store(default_url(vnuma_home))
    with store.write() as connection:
        study = runs.save_study(connection, "quick", study_text())
        run = runs.create_run(connection, study, seed=7, simulated="paper")
    claim_supervision(store, run)
    up = vnuma("lab", "up")
    assert up.code == 0, up.text
    try:
        refused = vnuma("lab", "down")
        still = vnuma("lab", "status")
    finally:
        stopped = vnuma("lab", "down", "--yes")

    assert refused.code == 3
    assert run.name in refused.err
    assert still.code == 0
    assert stopped.code == 0
