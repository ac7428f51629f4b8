"""A check that looked at nothing is never a check that passed: pipelines read the exit code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.estate.build import check, estate_of, saved
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
    assert (ran.code, ran.out) == (3, ""), ran.text


def test_one_broken_source_of_several_ends_in_input_error(shared_lab: LabHandle, tmp_path: Path) -> None:
    """The VMs of the source that failed would be missing, and nobody would know."""
    folder = tmp_path / "inventory"
    folder.mkdir()
    write_inventory(folder, shared_lab)
    (folder / "password").rename(tmp_path / "password")
    (folder / "more.yml").write_text("plugin: nobody.nowhere.nothing\n")
    ran = vnuma_here("check", "--all", "-i", folder, "--fail-on", "block")
    assert ran.code == 3, ran.text


@pytest.mark.parametrize("source", ["a snapshot without VMs", "no estate", "templates alone"])
def test_a_source_without_vms_ends_in_input_error_and_is_not_recorded(tmp_path: Path, source: str) -> None:
    """A record would say that every finding of the estate is gone."""
    sheets = {name: [{**row, "Template": True} for row in rows] for name, rows in export().items()}
    store = tmp_path / "checks.db"
    given = {
        "a snapshot without VMs": ("--snapshot", saved(tmp_path, replace(estate_of("sql-a"), vms=()))),
        "no estate": ("--snapshot", saved(_folder(tmp_path / "none"))),
        "templates alone": ("--rvtools", write(tmp_path / "export.xlsx", sheets)),
    }[source]
    for more in (("--fail-on", "warn"), ("--record", "--store", f"sqlite:///{store}")):
        ran = vnuma_here("check", *given, *more)
        assert ran.code == 3, ran.text
    assert not store.exists()


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _export_of_info_alone(folder: Path) -> Path:
    sheets = export(vms=4)
    return write(folder / "info.xlsx", {"vInfo": sheets["vInfo"], "vHost": sheets["vHost"]})


def test_a_vm_whose_topology_was_not_checked_does_not_pass(tmp_path: Path) -> None:
    """Without vCPU an export has neither sockets nor hot-add; without defaults, no keys either."""
    counts = check("--rvtools", _export_of_info_alone(tmp_path))["summary"]
    assert (counts["vms_pass"], counts["vms_undecided"]) == (0, 4)
    assert counts["checks_evaluated"] + counts["checks_not_evaluated"] == counts["checks"]
    assert next(iter(counts)) == "checks_evaluated"


@pytest.mark.parametrize(("options", "code"), [((), 10), (("--least-evaluated", "0"), 0)])
def test_too_little_evaluated_fails_a_pipeline(tmp_path: Path, options: tuple[str, ...], code: int) -> None:
    """By default every VM's topology has to be checked; a share that is enough can be stated."""
    workbook = _export_of_info_alone(tmp_path)
    ran = vnuma_here("check", "--rvtools", workbook, "--fail-on", "block", *options)
    assert ran.code == code, ran.text
    assert bool(ran.err.count("T11")) == (code == 10)


def test_assumed_findings_count_for_a_pipeline_unless_it_says_otherwise(tmp_path: Path) -> None:
    """8 vCPUs with 768 GB on nodes of 256 GB: T09, which assumes that no key spreads the memory."""
    sheets = export(vms=1)
    sheets["vInfo"][0] |= {"CPUs": 8, "Memory": 786432}
    sheets["vMemory"][0] |= {"Size MiB": 786432, "Reservation": 786432}
    sheets["vCPU"][0] |= {"CPUs": 8, "Cores p/s": 8, "Sockets": 1}
    sheets["vHost"] = [{**row, "# Memory": 1048576, "Host Power Policy": "static"} for row in sheets["vHost"]]
    workbook = write(tmp_path / "export.xlsx", sheets)
    command = ("check", "--rvtools", workbook, "--fail-on", "warn")
    found = {item["rule"]: item for item in check("--rvtools", workbook)["findings"]}
    assert found["T09"]["assumed"] == "assumes default numa.* keys, not shown by RVTools"
    assert {item["rule"] for item in found.values() if item["severity"] == "warn"} == {"T06", "T09"}
    assert vnuma_here(*command).code == 10
    assert vnuma_here(*command, "--no-fail-on-assumed").code == 0


def test_a_vm_that_could_not_be_read_fails_a_pipeline(tmp_path: Path) -> None:
    """Beside one that passes; a total is not a VM."""
    table = tmp_path / "d.csv"
    rows = ["name,cpus,cores per socket,memory", "b,0,1,64 GB", "c,8,8,64 GB", "Total,8,,64 GB"]
    table.write_text("\n".join(rows), encoding="utf-8")
    command = ("check", table, "--host-nodes", "2x16/256@8.0", "--fail-on", "block")

    ran = vnuma_here(*command)
    table.write_text("\n".join(rows[:1] + rows[2:]), encoding="utf-8")

    assert (ran.code, "not read: b" in ran.err) == (10, True)
    assert vnuma_here(*command).code == 0
