"""What is read of a VM and its host."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vsphere.support import LabFactory, Login, vm
from vnuma.domain.arm.arm import Arm
from vnuma.domain.vm.setting import TYPED, Power
from vnuma.engine.cell.shape import plan_shape
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.read import find_vm, read_host, read_vm, read_vm_on_host


def test_the_papers_vm_is_read(session: Session) -> None:
    """Shape, place, identity and state of the paper's VM come as plain values."""
    facts = read_vm(session, find_vm(session, "sql16"))
    assert (facts.name, facts.path, facts.power) == ("sql16", "/DC0/vm/sql16", Power.ON)
    assert facts.settings["numCPUs"] == 16
    assert facts.settings["numCoresPerSocket"] == 4
    assert facts.settings["memoryMB"] == 65536
    assert facts.settings["cpuAffinity"] == ()
    assert facts.hardware_version == 11
    assert facts.guest_id.startswith("windows")
    assert facts.key == f"{session.about.uuid}/{facts.instance_uuid}"
    assert facts.host_name == "esx01"
    assert facts.change_version
    assert facts.lease is None
    assert facts.question is None
    assert not facts.has_snapshot
    assert not facts.is_template


def test_a_vm_is_one_round_trip(session: Session, ref: VmRef) -> None:
    """VM, folders, host and cluster come in one read."""
    before = session.round_trips
    read_vm(session, ref)
    assert session.round_trips - before == 1


def test_every_typed_setting_is_named(session: Session) -> None:
    """A baseline names every typed setting, with None for what this hardware version lacks."""
    settings = read_vm(session, find_vm(session, "sql16")).settings
    assert settings.keys() >= TYPED.keys()
    assert settings["coresPerNumaNode"] is None


@pytest.mark.parametrize(("host", "used"), [({}, True), ({"one_thread_per_core": True}, False)])
def test_a_host_tells_whether_it_schedules_on_every_thread(
    lab: LabFactory, login: Login, host: dict[str, Any], used: bool
) -> None:
    """Under SCAv1 hyper-threading is on and not active."""
    session = login(lab(host=host))
    facts = read_vm(session, find_vm(session, "sql16"))
    assert read_host(session, session.host(facts.host_moid)).threads_used is used


def test_the_host_is_read_as_it_is_built(session: Session) -> None:
    """Packages, cores, threads and NUMA nodes come from ESXi, with every logical CPU in one node."""
    facts = read_vm(session, find_vm(session, "sql16"))
    host = read_host(session, session.host(facts.host_moid))
    assert (host.name, host.release.key) == ("esx01", (6, 0))
    assert (host.packages, host.cores, host.threads, host.threads_per_core) == (2, 32, 64, 2)
    assert host.memory_mb == 192 * 1024
    assert [node.cpus for node in host.numa_nodes] == [tuple(range(32)), tuple(range(32, 64))]
    assert [node.memory_mb for node in host.numa_nodes] == [96 * 1024, 96 * 1024]
    assert host.cores_per_node == 16
    assert host.cpu_model == "Intel(R) Xeon(R) CPU E5-2698 v3 @ 2.30GHz"
    assert host.bios
    assert host.release.build
    assert not host.in_drs_cluster


def test_a_host_is_two_round_trips(session: Session) -> None:
    """Host and cluster come in one read, its NUMA options in a second."""
    moid = read_vm(session, find_vm(session, "sql16")).host_moid
    before = session.round_trips
    read_host(session, session.host(moid))
    assert session.round_trips - before == 2


def test_a_host_that_follows_cores_per_socket_is_predicted_so(lab: LabFactory, login: Login) -> None:
    """The host's own option counts like the VM's key; an account that may not read it sees None."""
    running = lab(esxi={"version": "8.0.3", "build": "1"}, host={"follow_cores_per_socket": True})
    session = login(running)
    ref = find_vm(session, "sql16")
    before = session.round_trips
    vm, host = read_vm_on_host(session, ref)
    assert session.round_trips - before == 2
    assert (vm, host) == (read_vm(session, ref), read_host(session, session.host(vm.host_moid)))
    arm = Arm.model_validate({"topology": "4x4", "follow_cores_per_socket": "off"})

    assert host.advanced is not None
    assert host.advanced["Numa.FollowCoresPerSocket"] == "1"
    assert plan_shape(arm, vm, host).prediction.vnuma_nodes == 4


def test_what_a_vm_was_given_is_read(lab: LabFactory, login: Login) -> None:
    """Affinity, locked memory, hot-add and NUMA keys of a VM are in its settings."""
    given = vm(
        hardware=20,
        cpu_hot_add=True,
        memory_hot_add=True,
        reservation_locked=True,
        cpu_affinity=list(range(30, -2, -2)),
        cores_per_numa_node=8,
        extra_config={"numa.vcpu.followcorespersocket": "1", "guestinfo.note": "x", "vnuma.run": "mine"},
        power="off",
    )
    session = login(lab({"esxi": {"version": "8.0.3"}, "vms": [given]}))
    facts = read_vm(session, find_vm(session, "sql16"))
    assert facts.power is Power.OFF
    assert facts.hardware_version == 20
    assert facts.settings["cpuHotAddEnabled"] is True
    assert facts.settings["memoryHotAddEnabled"] is True
    assert facts.settings["memoryReservationLockedToMax"] is True
    assert facts.settings["memoryReservation"] == 65536
    assert facts.settings["cpuAffinity"] == tuple(range(0, 32, 2))
    assert facts.settings["coresPerNumaNode"] == 8
    assert facts.settings["numa.vcpu.followcorespersocket"] == "1"
    assert not {"guestinfo.note", "vnuma.run"} & facts.settings.keys()
    assert facts.lease == "mine"


def test_an_attribute_that_is_unset_reads_as_none(session: Session) -> None:
    """pyVmomi's attributes answer for other programs too; a host names only managers that exist."""
    ref: Any = find_vm(session, "sql16")
    assert ref.snapshot is None
    managers = ref.runtime.host.configManager
    assert managers.autoStartManager is None
    assert managers.advancedOption.setting
