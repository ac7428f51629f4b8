"""What is seen around a VM before a study."""

from __future__ import annotations

import pytest

from tests.vsphere.support import LabFactory, Login, change, vm
from vnuma.domain.vm.surroundings import Limit, Surroundings
from vnuma.vsphere.apply import reconfigure
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.read import find_vm
from vnuma.vsphere.surroundings import read_surroundings

AROUND = {
    "fault_tolerance": True,
    "change_tracking": True,
    "devices": ["raw_disk", "multi_writer_disk", "shared_bus", "passthrough", "vtpm"],
    "encrypted": True,
    "managed_by": "com.vmware.vcDr",
    "running_task": "VirtualMachine.createSnapshot",
    "moved_minutes_ago": 3,
    "guest_name": "OTHER",
}


def test_a_clean_vm_has_nothing_around_it(session: Session, ref: VmRef) -> None:
    """Two round trips, one of them for its host's clock; it has a name, an address and a licence."""
    before = session.round_trips
    seen = read_surroundings(session, ref)
    assert seen == Surroundings(
        guest_name="SQL16",
        free_licence=False,
        powered_on_mb={ref._GetMoId(): 64 * 1024},
        running=seen.running,
    )
    assert seen.running is not None
    assert seen.running.addresses == {"127.0.0.1"}
    assert session.round_trips - before == 2


def test_everything_around_a_vm_is_seen(lab: LabFactory, login: Login) -> None:
    """Neighbours that run, guardians, tasks and devices, each by a name that people know."""
    neighbours = [vm("busy", memory_gb=1), vm("idle", memory_gb=1, power="off")]
    session = login(lab({"vms": [vm(around=AROUND, reservation_locked=True), *neighbours]}))
    seen = read_surroundings(session, find_vm(session, "sql16"))
    assert seen.neighbours == ("busy",)
    assert sorted(seen.powered_on_mb.values()) == [1024, 64 * 1024]
    assert seen.moved_minutes_ago is not None
    assert 2.9 < seen.moved_minutes_ago < 4
    assert seen == Surroundings(
        neighbours=("busy",),
        powered_on_mb=seen.powered_on_mb,
        fault_tolerance=True,
        running_tasks=("VirtualMachine.createSnapshot",),
        moved_minutes_ago=seen.moved_minutes_ago,
        change_tracking=True,
        shared_disks=("Hard disk (shared)", "SCSI controller (shared)"),
        raw_disks=("Hard disk (raw)",),
        passthrough=("PCI device 0",),
        virtual_tpm=True,
        encrypted=True,
        managed_by="com.vmware.vcDr",
        guest_name="OTHER",
        running=seen.running,
        free_licence=False,
    )


def test_limits_of_the_vm_and_of_pools_above_it_are_seen(lab: LabFactory, login: Login) -> None:
    """The lowest counts, if the VM has more; a limit that it cannot reach does not."""
    session = login(lab(vms=[vm(around={"pool_memory_limit_mb": 32_768})]))
    ref = find_vm(session, "sql16")
    reconfigure(session, ref, change(session, ref, cpuLimit=2000, memoryLimit=70_000))

    assert read_surroundings(session, ref).limits == (
        Limit("memory", 32_768, 65_536, of_pool=True),
        Limit("CPU", 2000, 16 * 2300, of_pool=False),
    )


@pytest.mark.parametrize(
    ("cluster", "own", "watched"),
    [
        ("vmMonitoringOnly", "", True),
        ("vmAndAppMonitoring", "", True),
        ("", "", False),
        ("vmMonitoringOnly", "vmMonitoringDisabled", False),
        ("", "vmMonitoringOnly", True),
    ],
)
def test_vm_monitoring_is_the_vms_own_or_its_clusters(
    lab: LabFactory, login: Login, cluster: str, own: str, watched: bool
) -> None:
    """A VM that has a setting of its own does not follow its cluster."""
    clusters = [{"name": "c1", "ha": True, "vm_monitoring": cluster}]
    hosts, vms = [{"name": "e1", "cluster": "c1"}], [vm(around={"vm_monitoring": own})]
    session = login(lab(clusters=clusters, hosts=hosts, vms=vms))

    assert read_surroundings(session, find_vm(session, "sql16")).heartbeat_watched is watched


def test_without_ha_nobody_watches(lab: LabFactory, login: Login) -> None:
    """VM monitoring is a part of HA: its setting counts only while HA is on."""
    clusters = [{"name": "c1", "vm_monitoring": "vmMonitoringOnly"}]
    session = login(lab(clusters=clusters, hosts=[{"name": "e1", "cluster": "c1"}]))

    assert not read_surroundings(session, find_vm(session, "sql16")).heartbeat_watched


def test_ha_and_the_free_licence_are_seen(lab: LabFactory, login: Login) -> None:
    """HA is the cluster's; the licence is the server's."""
    clusters, hosts = [{"name": "c1", "ha": True}], [{"name": "e1", "cluster": "c1"}]
    session = login(lab(licence="free", clusters=clusters, hosts=hosts))
    seen = read_surroundings(session, find_vm(session, "sql16"))
    assert seen.high_availability
    assert seen.free_licence
    assert seen.neighbours == ()


@pytest.mark.parametrize("on", [True, False])
def test_admission_control_is_its_clusters(lab: LabFactory, login: Login, on: bool) -> None:
    """HA's own switch; without HA nothing is kept free for failovers."""
    clusters = [{"name": "c1", "ha": True, "admission_control": on}]
    session = login(lab(clusters=clusters, hosts=[{"name": "e1", "cluster": "c1"}]))

    assert read_surroundings(session, find_vm(session, "sql16")).admission_control is on


def test_the_root_pool_has_what_its_host_has(session: Session, ref: VmRef) -> None:
    """A root pool's reservation is what its host can give to VMs."""
    host, pool = ref.runtime.host, ref.resourcePool
    assert host is not None
    assert pool is not None
    assert host.hardware is not None
    host_mb = host.hardware.memorySize // 2**20

    assert 0.9 * host_mb < (pool.config.memoryAllocation.reservation or 0) <= host_mb
