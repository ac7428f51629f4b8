"""The verdicts of `studies/closson2009.yml` on a real kernel whose dd plays the published cost, or none.

Where pages lie is real; the times are played (tests/support/played_dd.sh), since an emulator has no remote
memory. The same file, smaller: its arms, published figures and order stay.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli import vnuma
from tests.support.emulated import Guest
from vnuma.assets import asset

PUBLISHED = 0.3002 / 0.2447
"""Seconds from the other socket over those from the own one (Closson 2009)."""

SIZE = 16


def _study(folder: Path) -> Path:
    """The shipped study on the guest, with a file that fits it; the unsaturated form takes real time."""
    study = yaml.safe_load(asset("studies/closson2009.yml").read_text(encoding="utf-8"))
    study["vm"] = "emulated"
    study["arms"] = [arm for arm in study["arms"] if arm["name"] != "depleted"]
    study["workload"] |= {"sizes": [SIZE], "forms": ["single", "saturated"], "folder": "/data"}
    study["published"]["figures"]["single"] = {SIZE: study["published"]["figures"]["single"][1472]}
    path = folder / "closson2009.yml"
    path.write_text(yaml.safe_dump(study), encoding="utf-8")
    return path


def _arms(study: Path, guest: Guest) -> dict[tuple[str, str], dict[str, Any]]:
    """Each arm's line of the results, by form and arm; every cell of the run is valid."""
    ran = vnuma("run", study, "-i", guest.inventory, timeout_s=1500)
    assert "24 of 24 cells valid" in ran.text, ran.text
    document = json.loads(vnuma("results", "latest", "--format", "json").out)
    return {
        (analysis["form"], arm["arm"]): arm
        for analysis in document["analyses"]
        if analysis["metric"] == "value"
        for arm in analysis["arms"]
    }


@pytest.mark.long
@pytest.mark.parametrize("guest_that_plays", [PUBLISHED], indirect=True)
def test_remote_pages_are_slower_by_the_published_factor(guest_that_plays: Guest, tmp_path: Path) -> None:
    """6.0 against 4.9 GB/s, interleaved half of it; the published figures are shown next to ours."""
    arms = _arms(_study(tmp_path), guest_that_plays)

    for form in ("single", "saturated"):
        assert arms[form, "remote"]["verdict"] == "slower"
        assert 1 / arms[form, "remote"]["ratio"] == pytest.approx(PUBLISHED, rel=0.01)
        assert arms[form, "interleaved"]["verdict"] == "slower"
        assert 1 / arms[form, "interleaved"]["ratio"] == pytest.approx((1 + PUBLISHED) / 2, rel=0.02)
    shown = vnuma("results", "--all").out
    assert "EMULATED" in shown
    assert "Closson 2009" in shown


@pytest.mark.long
@pytest.mark.parametrize("guest_that_plays", [1.0], indirect=True)
def test_nothing_is_found_where_remote_pages_cost_nothing(guest_that_plays: Guest, tmp_path: Path) -> None:
    """Every arm is equivalent to local."""
    arms = _arms(_study(tmp_path), guest_that_plays)

    assert {arm["verdict"] for arm in arms.values()} == {"equivalent"}
