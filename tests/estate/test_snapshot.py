"""Snapshots: what is read back, what older and newer files do, and what is not in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.estate.workbooks import export, write
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from vnuma.domain.vm.estate import Estate
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.design_check import estates
from vnuma.errors import InputError
from vnuma.estate import snapshot
from vnuma.estate.rvtools import read_rvtools

DATA = Path(__file__).parent / "data"


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """A small estate."""
    return read_rvtools(write(tmp_path / "export.xlsx", export()))


def test_an_estate_reads_back_as_it_was(estate: Estate, tmp_path: Path) -> None:
    """Every VM, host, cluster and reason is the same after a save and a load."""
    snapshot.save([estate], tmp_path / "s.json")
    assert snapshot.load(tmp_path / "s.json") == (estate,)


def test_only_a_snapshot_is_overwritten(estate: Estate, tmp_path: Path) -> None:
    """Refuse to overwrite a file that is not a snapshot; an empty one, as mktemp makes it, is accepted."""
    file, study = tmp_path / "s.json", tmp_path / "study.yml"
    study.write_text("name: first\n", encoding="utf-8")
    file.touch()
    snapshot.refuse_other_file(file)
    snapshot.save([estate], file)
    snapshot.refuse_other_file(file)
    snapshot.refuse_other_file(tmp_path / "new.json")
    with pytest.raises(InputError):
        estates.save(Inventory(tmp_path / "no inventory is read"), study)
    assert study.read_text(encoding="utf-8") == "name: first\n"


def test_the_first_format_is_read_by_every_later_version() -> None:
    """A snapshot written by the first version, without fields that came later, is read."""
    (estate,) = snapshot.load(DATA / "inventory-1.json")
    assert [vm.facts.name for vm in estate.vms] == ["sql16"]
    assert estate.vms[0].facts.settings["cpuAffinity"] == (0, 2)
    assert estate.cluster_of["host-1"].name == "SQL-PROD-A"


def test_a_newer_snapshot_is_refused_with_the_version_it_needs(estate: Estate, tmp_path: Path) -> None:
    """A format of the future is not guessed at."""
    file = tmp_path / "s.json"
    snapshot.save([estate], file)
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"schema": "vnuma/inventory/2", "readable_since": "3.1.0"}))
    with pytest.raises(InputError) as refused:
        snapshot.load(file)
    assert refused.value.fix == "Use vnuma 3.1.0 or newer."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all:", "is not a JSON document"),
        ("[]", "is not a snapshot of an inventory"),
        ('{"schema": "vnuma/inventory/1", "estates": [{"source": 1}]}', r"is damaged: estates\.0\."),
    ],
)
def test_another_file_is_refused(text: str, says: str, tmp_path: Path) -> None:
    """Anything else is refused, with its kind."""
    file = tmp_path / "s.json"
    file.write_text(text)
    with pytest.raises(InputError, match=says):
        snapshot.load(file)


def test_a_saved_inventory_has_no_password(shared_lab: LabHandle, tmp_path: Path) -> None:
    """The command writes what vCenter shows, and neither password nor account."""
    file = tmp_path / "estate.json"
    ran = vnuma_here("inventory", "save", file, "-i", write_inventory(tmp_path, shared_lab))
    assert ran.code == 0, ran.text
    assert ran.out.startswith("SIMULATED (lab, scenario paper)")
    text = file.read_text(encoding="utf-8")
    assert shared_lab.vcenter.password not in text
    assert shared_lab.vcenter.user not in text
    assert snapshot.load(file)[0].vms[0].facts.name == "sql16"
