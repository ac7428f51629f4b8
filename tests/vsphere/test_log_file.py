"""vmware.log: fetched from the running host, from vCenter after power-off, or not, with the reason."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.vsphere.support import LabFactory, Login, change, fault, vm
from vnuma.domain.vm.facts import VmFacts
from vnuma.logs.vmware import read_vmware_log
from vnuma.vsphere.apply import reconfigure
from vnuma.vsphere.connect import Session
from vnuma.vsphere.log_file import LogUnavailable, fetch_log
from vnuma.vsphere.power import power_on, shut_down, wait_for_guest
from vnuma.vsphere.read import find_vm, read_vm

FAST = {"tools_seconds": 0.05, "sql_seconds": 0.05, "shutdown_seconds": 0.05}
LONG_S = 20.0


def start(lab: LabFactory, login: Login, **scenario: Any) -> tuple[Session, VmFacts]:
    """A lab with quick boots, and its VM unchanged."""
    session = login(lab(**{"boot": FAST, **scenario}))
    return session, read_vm(session, find_vm(session, "sql16"))


def boot_with(session: Session, cores_per_socket: int) -> VmFacts:
    """Power-cycle the VM with another number of cores per socket."""
    ref = find_vm(session, "sql16")
    host = read_vm(session, ref).host_moid
    shut_down(session, ref, timeout_s=LONG_S)
    reconfigure(session, ref, change(session, ref, numCoresPerSocket=cores_per_socket))
    power_on(session, ref, host_moid=host)
    wait_for_guest(session, ref, timeout_s=LONG_S)
    return read_vm(session, ref)


@pytest.mark.parametrize("release", ["6.0.0", "6.5.0", "7.0.3", "8.0.3"])
def test_the_running_hosts_log_tells_the_layout_of_this_boot(
    lab: LabFactory, login: Login, release: str
) -> None:
    """In the form of its release; the second boot's log is the second boot's."""
    follow = {"numa.vcpu.followcorespersocket": "1"}
    session, _ = start(lab, login, esxi={"version": release}, vms=[vm(extra_config=follow)])

    for cores, nodes in ((8, 2), (2, 8)):
        file = fetch_log(session, boot_with(session, cores))
        log = read_vmware_log(file.text)
        assert file.source == "host"
        assert file.host_time is not None
        assert (log.vcpus, log.vpds, log.vpd_sizes) == (16, nodes, (cores,) * nodes)
        assert log.began is not None
        assert log.doubts == ()


def test_fetching_a_log_costs_one_call_and_one_request(lab: LabFactory, login: Login) -> None:
    """The ticket is the only call to vCenter."""
    session, facts = start(lab, login)
    before = session.round_trips
    fetch_log(session, facts)
    assert session.round_trips == before + 1


def test_a_vm_that_is_off_has_its_log_from_vcenter(lab: LabFactory, login: Login) -> None:
    """With the session that we have; no ticket is asked for."""
    session, _ = start(lab, login, faults=[fault("ticket_refused", times=0)])
    ref = find_vm(session, "sql16")
    shut_down(session, ref, timeout_s=LONG_S)

    file = fetch_log(session, read_vm(session, ref))

    assert file.source == "vcenter"
    assert read_vmware_log(file.text).vpds == 4


def test_a_vm_without_a_log_directory(lab: LabFactory, login: Login) -> None:
    """vCenter may hide the files of a VM."""
    session, facts = start(lab, login)
    with pytest.raises(LogUnavailable):
        fetch_log(session, replace(facts, log_directory=None))


@pytest.mark.parametrize("release", ["6.5.0", "8.0.3"])
def test_a_host_that_signed_its_own_certificate_is_known_by_the_thumbprint_in_the_ticket(
    lab: LabFactory, login: Login, release: str
) -> None:
    """vCenter, whose own certificate was verified, says which certificate the host has."""
    session, facts = start(lab, login, host_certificate="self_signed", esxi={"version": release})

    assert read_vmware_log(fetch_log(session, facts).text).vpds is not None


def test_a_host_with_another_certificate_than_vcenter_says_is_asked_for_nothing(
    lab: LabFactory, login: Login
) -> None:
    """The ticket is not sent to it."""
    session, facts = start(lab, login, host_certificate="another_is_said")
    with pytest.raises(LogUnavailable):
        fetch_log(session, facts)


def test_the_server_that_gives_a_log_after_power_off_is_verified_by_its_chain_alone(
    lab: LabFactory, login: Login
) -> None:
    """Nobody else vouches for vCenter: without a thumbprint its CA decides."""
    running, other = lab(boot=FAST), lab(boot=FAST)
    session = login(running)
    ref = find_vm(session, "sql16")
    shut_down(session, ref, timeout_s=LONG_S)
    facts, transport = read_vm(session, ref), session.transport
    transport.vcenter = replace(transport.vcenter, ca_file=str(other.vcenter.ca_file))
    with pytest.raises(LogUnavailable):
        fetch_log(session, facts)


def test_a_slow_host_is_given_up_on(lab: LabFactory, login: Login) -> None:
    """The deadline is for the whole answer."""
    session, facts = start(lab, login)
    ticks = count(0, 3)
    with pytest.raises(LogUnavailable):
        fetch_log(session, facts, clock=lambda: float(next(ticks) * 2))
