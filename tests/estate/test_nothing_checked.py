"""A check that looked at nothing is never a check that passed: pipelines read the exit code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.estate.build import estate_of, saved
from tests.estate.workbooks import export, write
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory

INVENTORIES = {
    "empty": "",
    "no hosts": "all: {}\n",
    "no vCenter": "all: {hosts: {sql16: {vnuma_vm: /DC1/vm/sql16}}}\n",
    "broken": "all: {hosts: [\n",
    "failing plugin": "plugin: ansible.builtin.constructed\nstrict: true\ncompose: {a: 1 / 0}\ngroups: 7\n",
    "unknown plugin": "plugin: nobody.nowhere.nothing\n",
}


@pytest.mark.parametrize("written", INVENTORIES.values(), ids=INVENTORIES)
def test_an_inventory_without_a_vcenter_ends_in_input_error(tmp_path: Path, written: str) -> None:
    """Broken, empty or failing: exit 3, with the inventory's name and what to do, and no "0 VMs"."""
    inventory = tmp_path / "site.yml"
    inventory.write_text(written)
    ran = vnuma_here("check", "--all", "-i", inventory, "--fail-on", "block")
    assert ran.code == 3, ran.text
    assert "site.yml" in ran.err
    assert "0 VMs" not in ran.out


def test_one_broken_source_of_several_ends_in_input_error(shared_lab: LabHandle, tmp_path: Path) -> None:
    """The VMs of the source that failed would be missing, and nobody would know."""
    folder = tmp_path / "inventory"
    folder.mkdir()
    write_inventory(folder, shared_lab)
    (folder / "password").rename(tmp_path / "password")
    (folder / "more.yml").write_text("plugin: nobody.nowhere.nothing\n")
    ran = vnuma_here("check", "--all", "-i", folder, "--fail-on", "block")
    assert ran.code == 3, ran.text
    assert "more.yml" in ran.err


def test_a_snapshot_without_vms_ends_in_input_error(tmp_path: Path) -> None:
    """Also one that has no estate at all."""
    for estates in ([replace(estate_of("sql-a"), vms=())], []):
        ran = vnuma_here("check", "--snapshot", saved(tmp_path, *estates), "--fail-on", "warn")
        assert ran.code == 3, ran.text
        assert "estate.json" in ran.err


def test_an_export_without_vms_ends_in_input_error(tmp_path: Path) -> None:
    """Templates alone are no VMs."""
    sheets = {name: [{**row, "Template": True} for row in rows] for name, rows in export().items()}
    ran = vnuma_here("check", "--rvtools", write(tmp_path / "export.xlsx", sheets), "--fail-on", "block")
    assert ran.code == 3, ran.text
    assert "export.xlsx" in ran.err


def test_nothing_checked_is_not_recorded(tmp_path: Path) -> None:
    """It would say that every finding of the estate is gone."""
    empty = saved(tmp_path, replace(estate_of("sql-a"), vms=()))
    store = tmp_path / "checks.db"
    ran = vnuma_here("check", "--snapshot", empty, "--record", "--store", f"sqlite:///{store}")
    assert ran.code == 3, ran.text
    assert not store.exists()
