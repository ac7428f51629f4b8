"""Scans over more data than a cache holds, as a study measures them."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps

SCAN: dict[str, Any] = {
    "reference": "2x8",
    "arms": ["2x8"],
    "all_arms": {"affinity": {"physical_cores": [0, 1]}},
    "design": {"blocks": 1, "order": "fixed", "a_a": False, "control": "remote", "warmups": 0},
    "workload": {"name": "scan_aggregate", "sizes": [20], "clock": "query_stats"},
}


def test_remote_memory_slows_a_scan_that_no_cache_holds(tmp_path: Path, lab: LabFactory) -> None:
    """The control's tables lie on one node and its worker on another; every byte of each row is read."""
    steps = Steps.prepared(tmp_path / "a", lab("remote"), **SCAN)
    context = steps.take()
    steps.measure(context)
    steps.measure(context)

    found = steps.samples
    times = {
        (item.arm, item.sample.form): median(
            one.sample.elapsed_ms or 0
            for one in found
            if (one.arm, one.sample.form) == (item.arm, item.sample.form)
        )
        for item in found
    }
    assert {item.sample.rows for item in found} == {20 * 512}
    assert times["2x8 (remote)", "sparse"] / times["2x8", "sparse"] == pytest.approx(1.4 / 1.2, rel=0.02)
    assert times["2x8 (remote)", "dense"] / times["2x8", "dense"] == pytest.approx(1.24 / 1.12, rel=0.02)
    steps.restore()
