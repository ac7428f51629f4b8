"""Reading what changed gives what a full reading gives, whatever changed, and reads little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.support.lab import start_lab
from tests.vsphere.support import vcenter_of, vm
from vnuma.domain.vm.estate import Estate
from vnuma.vsphere.connect import Session, VmRef, connect
from vnuma.vsphere.estate import read_estate
from vnuma.vsphere.read import find_vm
from vnuma.vsphere.wait import wait_for_task

SITE = {
    "name": "estate",
    "esxi": {"version": "8.0.2"},
    "hosts": [{"name": "esx1", "cluster": "C1"}, {"name": "esx2", "cluster": "C1"}],
    "clusters": [{"name": "C1", "drs": "fullyAutomated"}],
    "vms": [
        vm("sql16", host="esx1", folder="A"),
        vm("web", host="esx2", folder="B", around={"vapp": "Shop"}),
        vm("app", host="esx2", folder="B"),
    ],
}


@pytest.fixture(scope="module")
def session(lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session with a small estate that the tests change one after the other."""
    handle = start_lab(lab_binary, tmp_path_factory.mktemp("estate"), SITE, {})
    with connect(vcenter_of(handle)) as session:
        yield session
    handle.stop()


def shown(estate: Estate) -> object:
    """What an estate says, in no order, without when and how it was read."""
    return (
        {one.facts.moid: one for one in estate.vms},
        {one.moid: one for one in estate.clusters},
        set(estate.unseen),
    )


def reconfigured(**fields: Any) -> Callable[[Session, Any], Any]:
    """A change of the VM's configuration."""
    return lambda _session, ref: ref.ReconfigVM_Task(vim.vm.ConfigSpec(**fields))


def moved(session: Session, ref: Any) -> Any:
    """Into the other VM's folder."""
    folder: Any = find_vm(session, "app").parent
    return folder.MoveIntoFolder_Task([ref])


def option_set(_session: Session, ref: Any) -> None:
    """An advanced option of its host."""
    manager = ref.runtime.host.configManager.advancedOption
    manager.UpdateOptions([vim.option.OptionValue(key="Numa.PreferHT", value=1)])


KEY = vim.option.OptionValue(key="numa.vcpu.min", value="9")

CHANGES: dict[str, tuple[Callable[[Session, Any], Any], int]] = {
    "nothing": (lambda _session, _ref: None, 0),
    "a key": (reconfigured(extraConfig=[KEY]), 1),
    "renamed": (lambda _session, ref: ref.Rename_Task("sql16b"), 1),
    "another folder": (moved, 0),
    "powered off": (lambda _session, ref: ref.PowerOffVM_Task(), 1),
    "reshaped": (reconfigured(numCPUs=16, numCoresPerSocket=2), 1),
    "a host's option": (option_set, 0),
}
"""What is done to the VM, and how many VMs are then read in full."""


def test_what_is_read_after_a_change_is_what_a_full_reading_reads(session: Session, ref: VmRef) -> None:
    """Each kind of change: in the VM's configuration, elsewhere in the VM, and in its host or cluster."""
    kept = read_estate(session)
    for what, (change, read) in CHANGES.items():
        task = change(session, ref)
        if task is not None:
            wait_for_task(session, task, 20, what)
        now, full = read_estate(session, earlier=kept), read_estate(session)
        assert shown(now) == shown(full), what
        assert (shown(full) != shown(kept)) == (what != "nothing"), f"{what}: the lab shows nothing of it"
        assert len(now.vms) - now.taken_over == read, what
        assert now.full_at == kept.full_at
        kept = now


def test_nothing_but_the_configuration_is_taken_over(session: Session) -> None:
    """Earlier facts that `config.changeVersion` does not cover are never believed, here all of them wrong."""
    here = read_estate(session)
    other = {one.facts.host_moid: one.facts for one in here.vms}
    wrong = [
        replace(
            one,
            guest=None,
            tags=("Tier:Gold",),
            absent={"host": "its host is gone"},
            facts=replace(
                one.facts,
                path="/DC1/vm/earlier",
                host_moid=next(moid for moid in (*other, "host-1") if moid != one.facts.host_moid),
                host_name="earlier",
                guest_full_name="Windows NT",
                drs_override="manual",
            ),
        )
        for one in here.vms
    ]
    now = read_estate(session, earlier=replace(here, vms=tuple(wrong), clusters=()))
    assert (now.taken_over, shown(now)) == (len(here.vms), shown(here))


def with_hardware(here: Estate, **hardware: Any) -> Estate:
    """The reading as if all its hosts had this hardware."""
    clusters = (
        replace(one, hosts=tuple(replace(host, **hardware) for host in one.hosts)) for one in here.clusters
    )
    return replace(here, clusters=tuple(clusters))


def cores_seen(estate: Estate) -> set[int]:
    """How many cores its hosts have."""
    return {host.cores for one in estate.clusters for host in one.hosts}


def test_the_hardware_of_hosts_that_still_run_is_taken_over(session: Session) -> None:
    """The lab's hosts booted a month ago: what was read of them yesterday holds."""
    here = read_estate(session)
    now = read_estate(session, earlier=with_hardware(here, cores=99))
    assert cores_seen(now) == {99}


@pytest.mark.parametrize("booted_before_reading", [timedelta(days=-1), timedelta(hours=20)])
def test_the_hardware_of_a_host_that_booted_since_is_read_again(
    session: Session, booted_before_reading: timedelta
) -> None:
    """Also if it seems to have booted shortly before the reading: two clocks differ."""
    here = read_estate(session)
    ref = session.host(here.vms[0].facts.host_moid)
    read_at = session.read(ref, ("runtime.bootTime",)).values["runtime.bootTime"] + booted_before_reading
    earlier = replace(with_hardware(here, cores=99), read_at=read_at.isoformat())
    assert cores_seen(read_estate(session, earlier=earlier)) == cores_seen(here)


@pytest.mark.parametrize("unread", [{"numa_reported": False}, {"bios": ""}, {"cpu_model": ""}])
def test_hardware_that_was_not_shown_then_is_asked_for_again(
    session: Session, unread: dict[str, Any]
) -> None:
    """As where the account has got the right since: the host need not boot for that."""
    here = read_estate(session)
    earlier = with_hardware(here, cores=99, **unread)
    assert cores_seen(read_estate(session, earlier=earlier)) == cores_seen(here)


def test_the_hardware_of_another_vcenters_host_is_not_taken_over(session: Session) -> None:
    """Managed object ids of hosts repeat too."""
    here = read_estate(session)
    elsewhere = tuple(replace(one, facts=replace(one.facts, vcenter_uuid="another")) for one in here.vms)
    now = read_estate(session, earlier=replace(with_hardware(here, cores=99), vms=elsewhere))
    assert cores_seen(now) == cores_seen(here)


def test_another_vcenters_reading_is_not_taken_over(session: Session) -> None:
    """Managed object ids repeat: a VM is the same only in the same vCenter."""
    here = read_estate(session)
    elsewhere = [replace(one, facts=replace(one.facts, vcenter_uuid="another")) for one in here.vms]
    now = read_estate(
        session, earlier=replace(here, vms=tuple(elsewhere), full_at="2026-11-01T00:00:00+00:00")
    )
    assert (now.taken_over, now.full_at, shown(now)) == (0, now.read_at, shown(here))


def test_what_the_account_could_not_read_is_asked_again(session: Session) -> None:
    """A right that was given meanwhile changes no configuration."""
    here = read_estate(session)
    blind = tuple(replace(one, absent={"cpuAffinity": "the account lacks a privilege"}) for one in here.vms)
    assert shown(read_estate(session, earlier=replace(here, vms=blind))) == shown(here)
