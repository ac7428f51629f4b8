"""A whole vCenter read in bulk, held against an independent count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.support.lab import start_lab
from tests.vsphere.support import LabFactory, Login, vcenter_of
from vnuma.domain.vm.estate import Estate
from vnuma.errors import VCenterUnreachable
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.estate import SYSTEM_VM, read_estate
from vnuma.vsphere.read import find_vm, read_host, read_vm

FLEET = {"name": "estate", "esxi": {"version": "8.0.2"}, "fleet": {"hosts": 64, "vms": 1100}}


@pytest.fixture(scope="module")
def session(lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session with a lab that has a fleet."""
    handle = start_lab(lab_binary, tmp_path_factory.mktemp("fleet"), FLEET, {})
    with connect(vcenter_of(handle)) as session:
        yield session
    handle.stop()


@pytest.fixture(scope="module")
def reading(session: Session) -> tuple[Estate, int]:
    """The fleet, read in bulk, and how many round trips that took."""
    before = session.round_trips
    found = read_estate(session)
    return found, session.round_trips - before


@pytest.fixture(scope="module")
def estate(reading: tuple[Estate, int]) -> Estate:
    """The fleet."""
    return reading[0]


def test_few_round_trips_read_it_all(reading: tuple[Estate, int]) -> None:
    """Pages of hundreds of objects and one call a host, not one a VM."""
    found, trips = reading
    assert len(found.vms) > 1000
    assert trips < 64 + 20


def test_what_is_read_in_bulk_is_what_is_read_one_by_one(session: Session, estate: Estate) -> None:
    """A VM and a host have the same facts, whichever way they are read."""
    by_name = {vm.facts.name: vm.facts for vm in estate.vms}
    for name in ("fleet-vm00005", "fleet-vm00021", "fleet-vm00103", "sql16"):
        bulk, alone = by_name[name], read_vm(session, find_vm(session, name))
        assert {**alone.settings} == {**alone.settings, **bulk.settings}
        assert len(bulk.settings) >= 14
        assert (
            bulk.path,
            bulk.key,
            bulk.power,
            bulk.host_name,
            bulk.hardware_version,
            bulk.drs_override,
        ) == (
            *(alone.path, alone.key, alone.power, alone.host_name, alone.hardware_version),
            alone.drs_override,
        )
    host, alone_host = (
        estate.hosts[bulk.host_moid],
        read_host(session, session.host(bulk.host_moid)),
    )
    assert (host.numa_nodes, host.release, host.cores, host.in_drs_cluster) == (
        *(alone_host.numa_nodes, alone_host.release, alone_host.cores),
        alone_host.in_drs_cluster,
    )


def config_of(vm: Any) -> Any:
    """The VM's configuration; None where it is unset, which vcsim answers with a type of its own."""
    try:
        return vm.config
    except VCenterUnreachable:
        return None


@pytest.mark.long
def test_an_independent_count_agrees(session: Session, estate: Estate) -> None:
    """Counts made by asking every object for its attributes, as a script would, are the bulk read's."""
    content = session.content
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
    counted: Counter[Any] = Counter()
    for vm in view.view:
        runtime, config = vm.runtime, config_of(vm)
        if config is None:
            counted["no configuration"] += 1
            continue
        counted["hot-add"] += config.cpuHotAddEnabled
        counted["vCPUs"] += config.hardware.numCPU
        counted["GB"] += config.hardware.memoryMB >> 10
        counted["pinned"] += config.cpuAffinity is not None
        counted["without host"] += runtime.host is None
        counted["running"] += runtime.powerState == "poweredOn"
    settings = [vm.facts.settings for vm in estate.vms]
    assert counted == {
        "no configuration": sum(item.kind == "vm" for item in estate.unseen),
        "hot-add": sum(item["cpuHotAddEnabled"] is True for item in settings),
        "vCPUs": sum(item["numCPUs"] for item in settings),  # type: ignore[misc]
        "GB": sum(item["memoryMB"] for item in settings) >> 10,  # type: ignore[misc]
        "pinned": sum(item["cpuAffinity"] != () for item in settings),
        "without host": sum(not vm.facts.host_moid for vm in estate.vms),
        "running": sum(vm.facts.power == "poweredOn" for vm in estate.vms),
    }


def test_what_cannot_be_seen_is_named(estate: Estate) -> None:
    """Inaccessible VMs, orphans and disconnected hosts do not end the reading; each says why."""
    assert {(item.kind, item.name) for item in estate.unseen} == {
        ("vm", "fleet-vm00996"),
        ("host", "fleet-esx052"),
    }
    orphan = next(vm for vm in estate.vms if vm.facts.name == "fleet-vm00498")
    assert orphan.absent == {"host": "the VM has no host (orphaned)"}
    lost = next(vm for vm in estate.vms if vm.facts.host_name == "fleet-esx052")
    assert lost.absent == {"host": "fleet-esx052 is disconnected"}
    assert [cluster.unread for cluster in estate.clusters if cluster.unread] == [("fleet-esx052",)]


def test_hosts_know_their_options_and_what_runs_on_them(session: Session, estate: Estate) -> None:
    """Advanced NUMA options, power policy and the memory of running VMs are read of every host."""
    host = next(host for host in estate.hosts.values() if host.name == "fleet-esx003")
    assert host.advanced is not None
    assert host.advanced["Numa.FollowCoresPerSocket"] == "0"
    assert host.power_policy == "dynamic"
    assert host.numa_reported is True
    assert host.powered_on_mb is not None
    on = [vm.facts for vm in estate.vms if vm.facts.host_name == host.name and vm.facts.power == "poweredOn"]
    assert host.powered_on_mb == {vm.moid: vm.settings["memoryMB"] for vm in on}


def test_memory_is_not_added_up_where_a_vm_cannot_be_read(estate: Estate) -> None:
    """A host with an inaccessible VM has no total: it would be too small."""
    host = next(host for host in estate.hosts.values() if host.name == f"fleet-esx{996 % 64:03d}")
    assert host.powered_on_mb is None


def test_one_vm_comes_with_its_host_and_cluster(session: Session, estate: Estate) -> None:
    """Reading one VM reads the rest of its host too, but gives only that one."""
    alone = read_estate(session, find_vm(session, "fleet-vm00005"))
    assert [vm.facts.name for vm in alone.vms] == ["fleet-vm00005"]
    moid = alone.vms[0].facts.host_moid
    assert alone.hosts[moid] == estate.hosts[moid]
    assert alone.cluster_of[moid].name == "cluster00"


def test_the_evc_mode_of_a_cluster_is_its_hosts(lab: LabFactory, login: Login) -> None:
    """A host outside any cluster has none, which is not the same as not read."""
    hosts = [{"name": "e1", "cluster": "c1"}, {"name": "e2"}]
    session = login(lab(clusters=[{"name": "c1", "evc": "intel-broadwell"}], hosts=hosts))

    found = {host.name: host.evc_mode for host in read_estate(session).hosts.values()}

    assert found == {"e1": "intel-broadwell", "e2": ""}


def test_vspheres_own_vms_are_skipped_by_name_and_reason(lab: LabFactory, login: Login) -> None:
    """A vCLS VM is nobody's to judge; asked for by its name, it is read."""
    own = {"name": "vCLS-1", "around": {"managed_by": "com.vmware.vim.eam"}}
    session = login(lab({"vms": [{"name": "sql16"}, own]}))
    estate = read_estate(session)
    named = read_estate(session, only=find_vm(session, "vCLS-1"))

    assert [one.facts.name for one in estate.vms] == ["sql16"]
    assert [(item.kind, item.name, item.why) for item in estate.unseen] == [("vm", "vCLS-1", SYSTEM_VM)]
    assert [one.facts.name for one in named.vms] == ["vCLS-1"]
    assert named.unseen == ()
