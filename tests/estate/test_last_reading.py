"""The newest reading is kept for the next check: for whom, for how long, and when it is not believed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.estate.build import check, estate_of
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from vnuma.domain.vm.estate import Estate
from vnuma.engine.design_check.estates import FULL_EVERY, keep, last_reading
from vnuma.vsphere.vcenter import VCenter

HERE = VCenter("vc.example", user="ops")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Estate, datetime]:
    """A reading that was kept, and when all VMs were read."""
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path))
    full_at = datetime(2026, 11, 20, 3, tzinfo=UTC)
    estate = replace(estate_of("sql-a"), full_at=full_at.isoformat())
    keep(HERE, estate)
    return estate, full_at


def test_a_reading_is_good_for_a_week_and_its_account(kept: tuple[Estate, datetime]) -> None:
    """After that, before it (clock turned back), and for another account every VM is read again."""
    estate, full_at = kept
    assert last_reading(HERE, full_at + FULL_EVERY - timedelta(seconds=1)) == estate
    assert last_reading(HERE, full_at + FULL_EVERY) is None
    assert last_reading(HERE, full_at - timedelta(seconds=1)) is None
    assert last_reading(VCenter("vc.example", user="other"), full_at) is None
    assert last_reading(VCenter("vc.example", port=8443, user="ops"), full_at) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [('"written_by": "', '"written_by": "0.0.'), ('"estates"', '"estate"'), ("{", ""), ("2026", "20x6")],
    ids=["another version", "without estates", "cut", "without a time"],
)
def test_a_reading_that_is_not_understood_is_none(
    kept: tuple[Estate, datetime], tmp_path: Path, old: str, new: str
) -> None:
    """It is a saving and no record: the next check reads everything."""
    (file,) = (tmp_path / "readings").iterdir()
    file.write_text(file.read_text().replace(old, new))
    assert last_reading(HERE, kept[1]) is None


def test_a_recorded_check_reads_what_changed(
    shared_lab: LabHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one finds the same, says how many VMs were read, and --full reads them all."""
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path / "home"))
    inventory = write_inventory(tmp_path, shared_lab)

    def recorded(number: int, *more: str) -> dict[str, Any]:
        store = f"sqlite:///{tmp_path}/{number}.db"
        return check("--all", "-i", inventory, "--record", "--store", store, *more)

    first, second, third = recorded(1), recorded(2), recorded(3, "--full")
    assert first["findings"] == second["findings"] == third["findings"]
    one, two, three = (found["sources"][0] for found in (first, second, third))
    assert (one["taken_over"], two["taken_over"], three["taken_over"]) == (0, two["vms"], 0)
    assert two["full_at"] == one["full_at"] <= three["full_at"]
    assert vnuma_here("check", "--all", "-i", inventory, "--full").code == 2
