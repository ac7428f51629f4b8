"""An account that sees part of the inventory: the check continues, and lists what it could not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.estate.build import checked
from tests.support.lab import LabHandle, start_lab
from tests.vsphere.support import vcenter_of
from vnuma.domain.vm.estate import Estate
from vnuma.vsphere.connect import connect
from vnuma.vsphere.estate import read_estate
from vnuma.vsphere.read import find_vm

SCENARIO = {
    "name": "partial",
    "esxi": {"version": "8.0.2"},
    "fleet": {"hosts": 31, "vms": 400},
    "accounts": [
        {"user": "folder", "sees": ["cluster01"]},
        {"user": "host-alone", "sees": ["fleet-esx016"]},
        {"user": "vms-only", "sees": ["fleet-vm00016", "fleet-vm00017"]},
        {"user": "nobody", "sees": ["no such thing"]},
    ],
}


@pytest.fixture(scope="module")
def lab_of_parts(lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHandle]:
    """A fleet with accounts that see parts of it."""
    handle = start_lab(lab_binary, tmp_path_factory.mktemp("parts"), SCENARIO, {})
    yield handle
    handle.stop()


def seen_by(lab: LabHandle, user: str) -> Estate:
    """What an account reads."""
    with connect(vcenter_of(lab, user=user or lab.vcenter.user)) as session:
        return read_estate(session)


def test_pages_are_read_to_the_end(lab_of_parts: LabHandle) -> None:
    """vCenter answers in pages of its own size; nothing beyond the first is lost, nothing is read twice."""
    with connect(vcenter_of(lab_of_parts)) as session:
        before = session.round_trips
        estate = read_estate(session)
        assert session.round_trips - before > 5
    names = [vm.facts.name for vm in estate.vms]
    assert len(names) == len(set(names)) == 401
    assert len(estate.hosts) == 32


def test_a_folder_and_its_cluster_are_checked_as_ever(lab_of_parts: LabHandle) -> None:
    """Where VMs, hosts and cluster may be seen, what is found is what the administrator finds there."""
    estate, whole = seen_by(lab_of_parts, "folder"), seen_by(lab_of_parts, "")
    assert {vm.facts.path.split("/")[3] for vm in estate.vms} == {"cluster01"}
    assert {cluster.name for cluster in estate.clusters} == {"cluster01"}
    part = {vm.facts.name: vm for vm in whole.vms if "/cluster01/" in vm.facts.path}
    assert {vm.facts.name: vm for vm in estate.vms} == part


def test_vms_without_their_hosts_are_checked_as_far_as_it_goes(lab_of_parts: LabHandle) -> None:
    """Rules on the VM alone are evaluated; those on its host have the reason that it may not be read."""
    result = checked(seen_by(lab_of_parts, "vms-only"))
    assert {vm.name for vm in result.vms} == {"fleet-vm00016", "fleet-vm00017"}
    for vm in result.vms:
        assert vm.not_evaluated["T22"] == "the VM's host may not be read"
        assert "A02" not in vm.not_evaluated


def test_one_vm_of_an_account_without_its_host(lab_of_parts: LabHandle) -> None:
    """Asked for by name it is found and read, though nothing around it is."""
    with connect(vcenter_of(lab_of_parts, user="vms-only")) as session:
        alone = read_estate(session, find_vm(session, "fleet-vm00016"))
    assert [vm.facts.name for vm in alone.vms] == ["fleet-vm00016"]
    assert alone.hosts == {}


def test_memory_is_not_added_up_where_others_are_hidden(lab_of_parts: LabHandle) -> None:
    """A host that holds VMs out of sight has no total: it would be too small."""
    whole = seen_by(lab_of_parts, "")
    hidden = seen_by(lab_of_parts, "host-alone")
    (host,) = hidden.hosts.values()
    assert next(it for it in whole.hosts.values() if it.name == host.name).powered_on_mb
    assert host.powered_on_mb is None


def test_an_account_that_sees_nothing_finds_nothing(lab_of_parts: LabHandle) -> None:
    """No VM, no host, no fault."""
    estate = seen_by(lab_of_parts, "nobody")
    assert (estate.vms, estate.clusters, estate.unseen) == ((), (), ())
