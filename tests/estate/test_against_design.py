"""What a site has against a design: which settings differ, who changed them, and what is not known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyVmomi import vim

from tests.conftest import LabFactory
from tests.estate.build import check, checked, estate_of, saved
from tests.estate.plans import plan, resource, written
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from tests.vsphere.support import vcenter_of
from vnuma.checks.against_design import Drift, compare_with_design
from vnuma.domain.vm.estate import Estate
from vnuma.report.check.as_page import as_page
from vnuma.report.check.words import drift_headline
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm
from vnuma.vsphere.wait import wait_for_task

PLANNED: dict[str, Any] = {"num_cpus": 16, "num_cores_per_socket": 8, "memory": 65536}
OTHER = "dba@corp.example"
SITE = {
    "name": "estate",
    "esxi": {"version": "8.0.2"},
    "accounts": [
        {
            "user": OTHER,
            "privileges": ["VirtualMachine.Config.CPUCount", "VirtualMachine.Config.AdvancedConfig"],
        }
    ],
    "vms": [{"name": "sql16", "power": "off", "hardware": 19}, {"name": "web", "power": "off"}],
}


def compared(designed: Estate, present: Estate) -> Drift:
    """Without filters."""
    return compare_with_design([designed], [present], lambda _estate, _vm: True, lambda _name: True)


def differing(drift: Drift) -> dict[str, Any]:
    """Of the one VM that differs: settings with the design's value and the present one."""
    (vm,) = drift.vms
    return {one.setting: (one.design, one.now) for one in vm.differences}


def test_each_setting_that_differs_is_named_with_both_values() -> None:
    """Typed ones, and keys that only one has; what ESXi writes itself does not count."""
    design = estate_of("sql-a", numCoresPerSocket=8, cpuAffinity=(), **{"numa.vcpu.min": "9"})
    now = estate_of(
        "sql-a",
        numCoresPerSocket=16,
        cpuAffinity=(0, 2),
        **{"numa.vcpu.preferHT": "TRUE", "numa.autosize.cookie": "160162"},
    )
    found = compared(design, now)
    assert differing(found) == {
        "cpuAffinity": ((), (0, 2)),
        "numCoresPerSocket": (8, 16),
        "numa.vcpu.min": ("9", None),
        "numa.vcpu.preferHT": (None, "TRUE"),
    }
    assert (found.compared, found.settings) == (1, 4)


def test_an_estate_does_not_differ_from_itself() -> None:
    """Nor from itself with a key spelled otherwise."""
    one = estate_of("sql-a", "sql-b", **{"numa.vcpu.min": "9"})
    other = estate_of("sql-a", "sql-b", **{"NUMA.vcpu.min": "9"})
    assert not compared(one, one).any
    assert not compared(one, other).any


def test_vms_of_one_side_and_of_doubtful_names_are_distinguished() -> None:
    """A VM that several have the name of is not compared, and none that a filter hides is missing."""
    design = estate_of("sql-a", "sql-b", "sql-c")
    here = estate_of("sql-a", "sql-x")
    twice = [replace(vm, facts=replace(vm.facts, name="sql-c")) for vm in estate_of("one", "two").vms]
    found = compared(design, replace(here, vms=(*here.vms, *twice)))
    assert [one.name for one in found.only_design] == ["sql-b"]
    assert [(one.name, one.why) for one in found.unmatched] == [("sql-c", "2 VMs have this name")]
    assert [one.name for one in found.only_site] == ["sql-x", "sql-c", "sql-c"]
    some = compared(design, replace(here, whole=False))
    assert some.only_design == ()


def test_a_vm_that_was_renamed_is_found_by_its_identity() -> None:
    """Not the one that has its former name now."""
    eight, four = *estate_of("sql-a", numCoresPerSocket=8).vms, *estate_of("sql-b", numCoresPerSocket=4).vms
    here = estate_of()
    renamed = [
        replace(vm, facts=replace(vm.facts, name=name)) for vm, name in ((eight, "sql-b"), (four, "sql-a"))
    ]

    found = compared(replace(here, vms=(eight, four)), replace(here, vms=tuple(renamed)))

    assert (found.compared, found.vms) == (2, ())


def test_what_a_design_leaves_open_is_not_compared(tmp_path: Path) -> None:
    """A Terraform plan of a template's clone says nothing of keys and affinity: the reason is shown."""
    file = written(tmp_path, plan(resource(name="sql-a", clone=[{"template_uuid": "x"}])))
    snapshot = saved(tmp_path, estate_of("sql-a"))
    drift = check("--snapshot", snapshot, "--against", file)["drift"]
    silent = {one["setting"]: one["reason"] for one in drift["settings_not_compared"]}
    assert {"cpuAffinity", "extraConfig"} <= silent.keys()
    assert all(silent.values())


def test_a_file_has_no_events(tmp_path: Path) -> None:
    """Who changed a VM of a snapshot is not known, and the way to learn it is named."""
    snapshot = saved(tmp_path, estate_of("sql-a"))
    file = written(tmp_path, plan(resource(name="sql-a", num_cpus=4)))
    (vm,) = check("--snapshot", snapshot, "--against", file)["drift"]["vms"]
    assert {one["changed_by"] for one in vm["differences"]} == {None}
    assert all(one["not_known"] for one in vm["differences"])


def reconfigure(lab: LabHandle, user: str, **fields: Any) -> None:
    """A change by another login."""
    with connect(vcenter_of(lab, user=user)) as session:
        ref: Any = find_vm(session, "sql16")
        wait_for_task(session, ref.ReconfigVM_Task(vim.vm.ConfigSpec(**fields)), 60, "by hand")


def test_the_check_names_who_changed_a_vm_by_hand_and_when(lab: LabFactory, tmp_path: Path) -> None:
    """Another login changes cores per socket and sets a key; the design and the check are as before."""
    running = lab(SITE)
    inventory = write_inventory(tmp_path, running)
    before = tmp_path / "before.json"
    assert vnuma_here("inventory", "save", before, "-i", inventory).code == 0
    key = vim.option.OptionValue(key="numa.vcpu.min", value="9")
    start = datetime.now(UTC)
    reconfigure(running, OTHER, numCPUs=16, numCoresPerSocket=2, extraConfig=[key])
    end = datetime.now(UTC)

    (vm,) = check("--all", "-i", inventory, "--against", before)["drift"]["vms"]
    assert vm["vm"] == "sql16"
    found = {one["setting"]: one for one in vm["differences"]}
    assert {name: (one["design"], one["now"]) for name, one in found.items()} == {
        "numCoresPerSocket": (4, 2),
        "numa.vcpu.min": (None, "9"),
    }
    for one in found.values():
        assert one["changed_by"] == "CORP.EXAMPLE\\dba"
        at = datetime.fromisoformat(one["changed_at"])
        assert start - timedelta(seconds=1) <= at <= end
    assert found["numCoresPerSocket"]["before"] == "4"

    for vm_name, code in (("sql16", 10), ("web", 0)):
        asked = ("--vm", vm_name, "-i", inventory, "--against", before, "--fail-on", "drift")
        assert vnuma_here("check", *asked).code == code


def test_a_note_does_not_make_its_writer_the_author(lab: LabFactory, tmp_path: Path) -> None:
    """Somebody writes an entry of the list into the VM's note, and sends the present value once more."""
    writer = "notes@corp.example"
    allowed = ["VirtualMachine.Config.CPUCount", "VirtualMachine.Config.Annotation"]
    running = lab(SITE | {"accounts": [*SITE["accounts"], {"user": writer, "privileges": allowed}]})
    inventory, before = write_inventory(tmp_path, running), tmp_path / "before.json"
    assert vnuma_here("inventory", "save", before, "-i", inventory).code == 0
    reconfigure(running, OTHER, numCPUs=8)
    reconfigure(running, writer, numCPUs=8, annotation="y config.hardware.numCPU: 4 -> 8; ")

    drift = check("--all", "-i", inventory, "--against", before)["drift"]

    ((one,),) = (vm["differences"] for vm in drift["vms"])
    assert (one["setting"], one["changed_by"], one["before"]) == ("numCPUs", "CORP.EXAMPLE\\dba", "16")


def test_a_terraform_plan_is_compared_with_a_live_vcenter(lab: LabFactory, tmp_path: Path) -> None:
    """A value that no event explains has a reason instead of an author; missing VMs count for --fail-on."""
    inventory = write_inventory(tmp_path, lab(SITE))
    file = written(
        tmp_path,
        plan(
            resource(**PLANNED, hardware_version=19),
            resource("vsphere_virtual_machine.gone", name="sql99"),
        ),
    )
    drift = check("--all", "-i", inventory, "--against", file)["drift"]
    (vm,) = drift["vms"]
    (one,) = (one for one in vm["differences"] if one["setting"] == "numCoresPerSocket")
    assert (one["design"], one["now"], one["changed_by"]) == (8, 4, None)
    assert one["not_known"]
    assert [one["name"] for one in drift["only_design"]] == ["sql99"]
    assert [one["name"] for one in drift["only_site"]] == ["web"]
    assert vnuma_here("check", "--all", "-i", inventory, "--against", file, "--fail-on", "warn").code == 10


def test_a_design_that_is_missing_or_bad_ends_a_check_before_it_begins(tmp_path: Path) -> None:
    """Judging drift needs a design, and the reader of its own kind says what is wrong with one."""
    snapshot, bad = saved(tmp_path, estate_of("sql-a")), tmp_path / "design.json"
    for text in ("{", '{"schema": "vnuma/inventory/99", "estates": []}'):
        bad.write_text(text, encoding="utf-8")
        ran = vnuma_here("check", "--snapshot", snapshot, "--against", bad)
        assert (ran.code, ran.out) == (3, "")
    assert vnuma_here("check", "--snapshot", snapshot, "--fail-on", "drift").code == 2


def test_drift_is_on_the_page_too() -> None:
    """Each setting with both values and why its author is not known; names are text."""
    design, present = estate_of("a<b>", "b"), estate_of("a<b>", "b", numCoresPerSocket=4)
    found = compared(design, replace(present, vms=(present.vms[0], design.vms[1])))
    pages = [as_page(result) for result in (replace(checked(present), drift=found), checked(present))]
    said = "<b>a&lt;b&gt;</b>: numCoresPerSocket is 4, designed 2; changed by: not known"

    headlines = [drift_headline(one).partition(": ")[2] for one in (found, compared(design, present))]
    assert headlines == ["1 of 2 VMs differs in 1 setting", "2 of 2 VMs differ in 2 settings"]
    assert [page.count(said) for page in pages] == [1, 0]
    assert [page.count('<h2 id="drift">') for page in pages] == [1, 0]
