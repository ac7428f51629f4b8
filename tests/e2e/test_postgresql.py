"""A run whose store is PostgreSQL, as several controllers and AWX need it."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.postgresql import Cluster
from tests.support.site import write_inventory, write_study


def test_a_study_runs_with_its_store_on_postgresql(
    tmp_path: Path, lab: LabFactory, postgresql: Cluster
) -> None:
    """Every cell valid, the VM put back, results and status read from there; nothing stored at home."""
    inventory = write_inventory(tmp_path, lab())
    url = {"VNUMA_STORE": postgresql.new_database()}

    ran = vnuma("run", write_study(tmp_path), "-i", inventory, env=url)

    assert ran.code == 0, ran.text
    assert "small.1: 2 of 2 cells valid." in ran.err
    assert "settings read back equal" in ran.err
    assert "VMs not at baseline: 0" in vnuma("status", env=url).out
    assert vnuma("results", "small.1", env=url).code == 0
    assert list(tmp_path.rglob("*.db")) == []
