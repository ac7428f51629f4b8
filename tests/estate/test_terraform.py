"""Terraform plans and states, from the file to what is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.estate.build import check, checked, document, estate_of, failed, rules_in, saved
from tests.estate.plans import KIND, REAL, change, plan, real, resource, written
from tests.support.cli import vnuma_here
from vnuma.checks.facts import EXTRA_CONFIG, HARDWARE
from vnuma.domain.topology.vm_location import VmLocation, parse_host
from vnuma.domain.vm.estate import HOST_DECIDES, Declared, EstateVm, NotShown
from vnuma.engine.design_check.designed_vms import on_hosts
from vnuma.estate.terraform import read_terraform

DEFAULTS: dict[str, Any] = {"cpuAffinity": (), "exposeVnumaOnCpuHotadd": False}
"""Of a new VM, without an attribute that sets them."""


def _real() -> dict[str, EstateVm]:
    """The VMs of the real plan, by the names of their resources."""
    return {vm.facts.path.rpartition(".")[2]: vm for vm in read_terraform(REAL / "plan.json").vms}


def _only(folder: Path, planned: object) -> EstateVm:
    (vm,) = read_terraform(written(folder, planned)).vms
    return vm


def test_a_planned_vm_is_checked(tmp_path: Path) -> None:
    """What the plan sets wrong is found, and what it cannot say is not evaluated."""
    said = check(
        "--design", written(tmp_path, plan(resource(num_cores_per_socket=3, cpu_hot_add_enabled=True)))
    )
    open_ = {rule for one in said["not_evaluated"] for rule in one["rules"]}
    assert rules_in(said) >= {"T01"}
    assert said["sources"][0]["kind"] == "terraform"
    assert open_ >= {"T22", "S05"}  # on the host, and on SQL Server


def test_what_no_attribute_shows_is_unknown_of_a_vm_that_exists(tmp_path: Path) -> None:
    """A new VM has vSphere's defaults; one that exists may have been changed by hand."""
    new = _only(tmp_path, plan(resource()))
    changed = _only(tmp_path, plan(resource(), changes=[change(actions=["update"])]))
    hidden = ("cpuAffinity", "memoryAffinity", "coresPerNumaNode", "exposeVnumaOnCpuHotadd")
    assert new.facts.settings.items() >= DEFAULTS.items()
    assert {changed.absent[setting] for setting in hidden} == {"the plan does not show it"}
    assert changed.facts.settings.keys().isdisjoint(hidden)


def test_a_deposed_object_says_nothing_of_the_vm_that_replaces_it(tmp_path: Path) -> None:
    """The old VM is deleted under the same address; the planned one is new all the same."""
    deposed = {**change(actions=["delete"], before=resource()["values"]), "deposed": "8dfa1b3c"}
    new = _only(tmp_path, plan(resource(), changes=[change(), deposed]))
    assert new.facts.settings.items() >= DEFAULTS.items()


def test_hardware_that_lacks_virtual_numa_is_known_to_lack_it(tmp_path: Path) -> None:
    """Hot-add on ESXi 8 is found with hardware 19, whatever the provider can say of hardware 20."""
    values = resource(num_cpus=48, num_cores_per_socket=24, hardware_version=19, cpu_hot_add_enabled=True)
    file = written(tmp_path, plan(values, changes=[change(actions=["update"])]))
    said = check("--design", file, "--host-nodes", "2x32/512@8.0")
    whys = [one["reason"] for one in said["not_evaluated"] if "T13" in one["rules"]]
    assert rules_in(said) >= {"T12"}
    assert not any("no attribute" in why for why in whys)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"num_cores_per_socket": 0}, {"autoCoresPerSocket": True}),
        ({"num_cores_per_numa_node": 8}, {"coresPerNumaNode": 8, "autoCoresPerNumaNode": False}),
        ({"num_cores_per_numa_node": 0}, {"coresPerNumaNode": 0, "autoCoresPerNumaNode": True}),
        ({"memory_reservation_locked_to_max": True}, {"memoryReservationLockedToMax": False}),
        (
            {"memory_reservation_locked_to_max": True, "memory_reservation": 65536},
            {"memoryReservationLockedToMax": True, "memoryReservation": 65536},
        ),
        ({"memory": None}, {"memoryMB": 1024}),
        ({"cpu_limit": 20000}, {"cpuLimit": 20000, "memoryLimit": -1}),
        ({"latency_sensitivity": "high"}, {"latencySensitivity": "high", "cpuHotAddEnabled": False}),
        (
            {"extra_config": {"numa.vcpu.preferHT": "TRUE", "guestinfo.userdata": "c2VjcmV0"}},
            {"numCPUs": 16, "numa.vcpu.preferHT": "TRUE", "guestinfo.userdata": None},
        ),
    ],
)
def test_attributes_become_settings(tmp_path: Path, values: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Each has vSphere's name and unit; what the code leaves out is the provider's default.

    0 leaves a size to vSphere; the lock applies only with a reservation of all memory.
    """
    found = _only(tmp_path, plan(resource(**values))).facts
    assert {name: found.settings.get(name) for name in wanted} == wanted
    assert found.hardware_version == 20


def test_what_is_known_after_apply_is_not_evaluated() -> None:
    """A value that the plan does not know is not replaced by a default or a zero; nor are keys assumed."""
    found = _real()["later"]
    (vm,) = [vm for vm in checked(read_terraform(REAL / "plan.json")).vms if vm.path.endswith(".later")]
    assert found.facts.name == f"{KIND}.later"
    assert found.facts.settings.keys().isdisjoint({"numCPUs"})
    assert found.absent.keys() >= {"numCPUs", EXTRA_CONFIG}
    assert found.absent[HARDWARE] == HOST_DECIDES
    assert not isinstance(found.absent[EXTRA_CONFIG], NotShown)
    assert vm.not_evaluated["T01"] == found.absent["numCPUs"]
    assert _real()["sql"].absent.keys().isdisjoint({EXTRA_CONFIG})


def test_a_sensitive_value_is_not_looked_at() -> None:
    """Its value is in the file, and nowhere in the result."""
    found = _real()["secret"]
    assert {"numCPUs", "numa.nodeAffinity"}.isdisjoint(found.facts.settings)
    assert found.facts.settings["numa.vcpu.preferHT"] == "TRUE"
    assert found.absent.keys() >= {"numCPUs", EXTRA_CONFIG}


@pytest.mark.parametrize("name", ["clone", "existing"])
def test_keys_that_terraform_does_not_show_are_not_taken_for_unset(name: str) -> None:
    """A template, or a VM that exists, may have keys that no plan shows."""
    assert isinstance(_real()[name].absent[EXTRA_CONFIG], NotShown)


def test_modules_count_and_for_each_give_a_vm_each(tmp_path: Path) -> None:
    """Every instance is there under its address, and a deleted one is not."""
    document = real()
    kept = [one for one in document["planned_values"]["root_module"]["resources"] if one["name"] != "sql"]
    document["planned_values"]["root_module"]["resources"] = kept
    paths = {vm.facts.path for vm in read_terraform(written(tmp_path, document)).vms}
    assert paths == {
        *(f'module.site["a"].{KIND}.dw[{number}]' for number in range(2)),
        *(f"{KIND}.{name}" for name in ("clone", "existing", "later", "replaced", "secret")),
    }


def test_a_state_is_read_too() -> None:
    """`tofu show -json` without a plan: the VMs as they are."""
    found = read_terraform(REAL / "state.json").vms
    assert {(vm.facts.name, vm.facts.settings["numCoresPerSocket"]) for vm in found} == {
        ("existing", 16),
        ("replaced", 16),
    }
    assert {vm.facts.hardware_version for vm in found} == {19, 20}


def test_a_finding_has_the_line_of_its_resource(tmp_path: Path) -> None:
    """SARIF and JSON name the .tf file, of a module in a folder below too; not of one elsewhere."""
    (tmp_path / "db").mkdir()
    (tmp_path / "main.tf").write_text('# VMs\n\nresource "vsphere_virtual_machine" "sql" {\n}\n')
    (tmp_path / "db" / "vms.tf").write_text('resource "vsphere_virtual_machine" "dw" {\n}\n')
    document_ = plan(resource(num_cores_per_socket=3))
    document_["planned_values"]["root_module"]["child_modules"] = [
        {"resources": [resource(f"module.{module}.{KIND}.dw", name=name, num_cores_per_socket=3)]}
        for module, name in (("db[0]", "dw"), ("up", "up"))
    ]
    calls = {"db": {"source": "./db", "module": {}}, "up": {"source": "../up", "module": {}}}
    document_["configuration"] = {"root_module": {"module_calls": calls}}
    file = written(tmp_path, document_)
    found = check("--design", file)["findings"]
    at = {item["object"]["name"]: item.get("declared") for item in found if item["rule"] == "T01"}
    assert at == {"sql16": {"file": "main.tf", "line": 3}, "dw": {"file": "db/vms.tf", "line": 1}, "up": None}
    sarif = document(vnuma_here("check", "--design", file, "--format", "sarif").out)
    places = [result["locations"][0].get("physicalLocation") for result in sarif["runs"][0]["results"]]
    assert {"artifactLocation": {"uri": "db/vms.tf"}, "region": {"startLine": 1}} in places


def test_a_waiver_is_in_a_comment_of_the_resource(tmp_path: Path) -> None:
    """A comment in the block or just above it, or a key of extra_config; of no other resource."""
    mark = "# vnuma:ignore=T01 until 2999-01-31: CR-17"
    (tmp_path / "main.tf").write_text(
        f'resource "{KIND}" "sql" {{\n  num_cpus = 7 {mark}\n}}\n\nresource "{KIND}" "next" {{\n}}\n'
        f'{mark}\nresource "{KIND}" "last" {{\n}}\n',
        encoding="utf-8",
    )
    odd = {"num_cpus": 7, "num_cores_per_socket": 2}
    keyed = resource(f"{KIND}.keyed", **odd, extra_config={"vnuma.ignore": "T01 until 2999-01-31: CR-18"})
    some = [resource(f"{KIND}.{name}", **odd) for name in ("sql", "next", "last")]
    result = checked(read_terraform(written(tmp_path, plan(*some, keyed))))
    waived = {
        vm.path.rpartition(".")[2]: item.waived
        for vm in result.vms
        for item in vm.findings
        if item.finding.rule == "T01"
    }
    assert waived == {"sql": "CR-17", "next": "", "last": "CR-17", "keyed": "CR-18"}


def test_the_code_of_a_real_plan_is_found() -> None:
    """A module's resource is in the folder that the plan's configuration names."""
    files = {name: vm.declared.file for name, vm in _real().items() if vm.declared}
    assert (Path(files["sql"]).parent.name, Path(files["dw[0]"]).parent.name) == ("terraform", "vm")


def test_lines_are_told_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code reviews look for the files of a finding from the repository's root, where the check runs."""
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "main.tf").write_text('resource "vsphere_virtual_machine" "sql" {\n}\n')
    file = written(tmp_path / "infra", plan(resource(num_cores_per_socket=3)))
    monkeypatch.chdir(tmp_path)

    (vm,) = read_terraform(file).vms

    assert vm.declared == Declared("infra/main.tf", 1)


def test_code_that_cannot_be_read_costs_its_lines_alone(tmp_path: Path) -> None:
    """A file that gives nothing but an error, even to root."""
    (tmp_path / "main.tf").symlink_to("/proc/self/mem")

    (vm,) = read_terraform(written(tmp_path, plan(resource()))).vms

    assert (vm.facts.name, vm.declared) == ("sql16", None)


def test_a_plan_without_vsphere_ends_in_exit_code_3(tmp_path: Path) -> None:
    """A pipeline would take a check of nothing for well; what the plan has is named."""
    other = {**resource("aws_instance.web"), "type": "aws_instance"}
    ran = vnuma_here("check", "--design", written(tmp_path, plan(other)))
    assert (ran.code, ran.err.count("aws_instance")) == (3, 1)


def test_one_vm_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    """It is named with the reason, and the rest is checked."""
    broken = resource(f"{KIND}.broken", num_cpus=10**9)
    odd = resource(f"{KIND}.odd", name="odd", num_cpus="16")
    estate = read_terraform(written(tmp_path, plan(resource(), broken, odd)))
    assert [vm.facts.name for vm in estate.vms] == ["sql16", "odd"]
    assert estate.vms[1].absent.keys() >= {"numCPUs"}
    assert [item.name for item in estate.unseen] == [f"{KIND}.broken"]


@pytest.mark.parametrize(
    ("cores", "hosts", "rule", "found"),
    [
        (20, ["2x16/256@8.0"], "T05", True),  # one socket splits unevenly over nodes of 16 cores
        (20, ["2x32/512@8.0"], "T05", False),
        (10, ["2x16/256@8.0", "2x32/256@8.0"], "T19", True),  # a move between them changes the nodes
        (10, ["2x16/256@8.0", "2x16/256@8.0"], "T19", False),
    ],
)
def test_a_described_host_is_what_the_design_is_judged_on(
    tmp_path: Path, cores: int, hosts: list[str], rule: str, found: bool
) -> None:
    """20 vCPUs; hosts of unlike nodes are a finding of their own."""
    there = VmLocation(tuple(parse_host(host, "8.0") for host in hosts))
    estate = read_terraform(written(tmp_path, plan(resource(num_cpus=20, num_cores_per_socket=cores))))
    (vm,) = checked(on_hosts(estate, there, None)).vms
    assert (rule in failed(vm)) is found


def test_a_cluster_of_a_snapshot_is_where_a_design_runs(tmp_path: Path) -> None:
    """By its name; the snapshot's own VMs are not checked, and an unknown cluster is refused."""
    file = written(tmp_path, plan(resource()))
    estate = saved(tmp_path, estate_of("other"))
    said = check("--design", file, "--snapshot", estate, "--cluster", "SQL-PROD-A")
    assert (said["summary"]["vms"], said["sources"][0]["hosts"]) == (1, 1)
    assert vnuma_here("check", "--design", file, "--snapshot", estate, "--cluster", "no").code == 3


@pytest.mark.parametrize(("more", "assumed"), [({}, 17), ({"clone": [{"template_uuid": "42"}]}, 0)])
def test_a_hardware_version_left_to_the_host_is_the_hosts(
    tmp_path: Path, more: dict[str, Any], assumed: int
) -> None:
    """It is assumed by the oldest release, and said; a template's own version stays unknown."""
    marks = change(after_unknown={"hardware_version": True})
    planned = plan(resource(hardware_version=None, **more), changes=[marks])
    hosts = tuple(parse_host("2x16/256", release) for release in ("7.0", "8.0"))
    estate = on_hosts(read_terraform(written(tmp_path, planned)), VmLocation(hosts), None)
    assert estate.vms[0].facts.hardware_version == assumed
    assert [item.name for item in estate.unseen] == ["hardware version"] * bool(assumed)


def test_a_described_host_without_a_design_is_a_mistake(tmp_path: Path) -> None:
    """Every other source has its own hosts."""
    assert (
        vnuma_here("check", "--snapshot", saved(tmp_path, estate_of("a")), "--host-nodes", "2x16").code == 2
    )


def test_a_change_is_predicted_before_and_after(tmp_path: Path) -> None:
    """The plan's prior state, or the site's VM of that name, is what the guest sees today."""
    before = resource(num_cpus=16, num_cores_per_socket=16)["values"]
    after = resource(num_cpus=24, num_cores_per_socket=12)
    file = written(tmp_path, plan(after, changes=[change(actions=["update"], before=before)]))
    (one,) = check(file, "--host-nodes", "4x6/128@7.0", "--host-nodes", "2x12/256@7.0")["predictions"]
    assert [
        (one[when]["shape"], [layout["node_sizes"] for layout in one[when]["layouts"]])
        for when in ("today", "planned")
    ] == [
        ("1x16", [[6, 5, 5], [8, 8]]),
        ("2x12", [[6, 6, 6, 6], [12, 12]]),
    ]


def test_the_site_says_what_a_vm_is_today(tmp_path: Path) -> None:
    """By its name in the snapshot, which also has the hosts."""
    there = estate_of("sql16", cpuHotAddEnabled=False)
    file, site = written(tmp_path, plan(resource(num_cpus=8, num_cores_per_socket=8))), saved(tmp_path, there)
    (one,) = check(file, "--snapshot", site, "--cluster", there.clusters[0].name)["predictions"]
    assert (one["today"]["shape"], one["planned"]["shape"]) == ("8x2", "1x8")


def test_a_key_that_vsphere_ignores_is_named(tmp_path: Path) -> None:
    """extra_config cannot set what a field owns; other keys are as they are."""
    keys = {"sched.cpu.affinity": "0-7", "numa.vcpu.coresPerNode": "8", "sched.mem.pshare.enable": "FALSE"}
    file = written(tmp_path, plan(resource(extra_config=keys)))

    told = [one.why for one in read_terraform(file).unseen]

    assert [why.partition(": its")[0].rpartition(" ")[2] for why in told] == [
        "sched.cpu.affinity",
        "numa.vcpu.coresPerNode",
    ]


@pytest.mark.parametrize(("hardware", "nodes"), [(13, (12, 12)), (7, (24,)), (None, (12, 12))])
def test_a_clone_has_the_hardware_version_of_its_template(
    tmp_path: Path, hardware: int | None, nodes: tuple[int, ...]
) -> None:
    """From the prior state; without it, it is not zero: the prediction takes the host's, and is not sure."""
    planned = real()
    data = planned["prior_state"]["values"]["root_module"]["resources"]
    (template,) = [one for one in data if one["type"] == KIND and one["mode"] == "data"]
    assert template["values"]["hardware_version"] == 13
    template["values"]["hardware_version"] = hardware
    there = VmLocation((parse_host("2x16/256", "7.0"),))
    estate = read_terraform(written(tmp_path, planned))
    (vm,) = [vm for vm in checked(on_hosts(estate, there, None)).vms if vm.name == "clone"]
    (read,) = [vm for vm in estate.vms if vm.facts.name == "clone"]
    assert read.facts.hardware_version == (hardware or 0)
    assert vm.planned is not None
    assert next(iter(vm.planned.hosts)) == nodes
    assert hardware or "hardware version" in vm.planned.doubt


@pytest.mark.parametrize("actions", [["delete", "create"], ["create", "delete"]])
def test_a_vm_that_is_replaced_is_new(tmp_path: Path, actions: list[str]) -> None:
    """It has no key and no affinity that the code does not set."""
    planned = real()
    (replaced,) = [one for one in planned["resource_changes"] if one["name"] == "replaced"]
    assert replaced["change"]["actions"] == ["delete", "create"]
    replaced["change"]["actions"] = actions
    found = {vm.facts.name: vm for vm in read_terraform(written(tmp_path, planned)).vms}["replaced"]
    assert found.absent.keys().isdisjoint({EXTRA_CONFIG})
    assert found.facts.settings["cpuAffinity"] == ()
