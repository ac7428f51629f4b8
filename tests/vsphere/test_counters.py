"""vSphere's counters of a boot: what there is, in its unit; what there is not, with its reason."""

from __future__ import annotations

import pytest

from tests.vsphere.support import LabFactory, Login, vm
from vnuma.domain.vm.facts import CpuWaits
from vnuma.vsphere.connect import Session
from vnuma.vsphere.counters import NO_NUMA, Series, counter_ids, read_counters, read_waits
from vnuma.vsphere.read import find_vm


def test_ready_and_co_stop_are_read_for_the_vm_and_load_for_its_host(session: Session) -> None:
    """Every sample of the last minute in milliseconds of 20 seconds; NUMA has no counter, and says so."""
    found = read_counters(session, find_vm(session, "sql16"), counter_ids(session), 60)

    assert isinstance(found["vm"], dict)
    assert isinstance(found["host"], dict)
    ready = found["vm"]["cpu.ready.summation"]
    assert ready == Series("ms", 20, ready.samples, 40.0, 40.0)
    assert ready.samples >= 3
    assert found["vm"]["cpu.costop.summation"].highest == 1
    assert found["host"]["cpu.usage.average"].unit == "percent/100"
    assert found["numa"] == NO_NUMA


def test_a_vcenter_without_the_counters_is_a_reason(session: Session) -> None:
    """Not zero, and no error either: a measurement does not depend on it."""
    found = read_counters(session, find_vm(session, "sql16"), {}, 60)

    assert found["vm"] == "this vCenter has none of these counters"


def test_reading_them_is_cheap_once_the_numbers_are_known(session: Session) -> None:
    """Two round trips a boot: where the VM is, and every counter at once."""
    ref, ids = find_vm(session, "sql16"), counter_ids(session)
    before = session.round_trips
    read_counters(session, ref, ids, 60)

    assert session.round_trips - before == 2


def test_waits_are_shares_of_one_vcpu(lab: LabFactory, login: Login) -> None:
    """The counters add up all vCPUs: 6.5% of each is 6.5%, whatever their number."""
    session = login(lab(vms=[vm("sql16", around={"cpu_ready_percent": 6.5, "co_stop_percent": 4})]))

    waits = read_waits(session, find_vm(session, "sql16"), 16)

    assert isinstance(waits, CpuWaits)
    assert waits.ready == pytest.approx(0.065)
    assert waits.co_stop == pytest.approx(0.04)
