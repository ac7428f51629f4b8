"""Beliefs about changing a VM that is off: what is stored, what is refused, and by which fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from pyVmomi import vim, vmodl

from vnuma.contract.suite import expect, source
from vnuma.contract.vcenter import ACCEPTED, API, DEFAULT, KEY, Clone, cpus_for, number, other_cores
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Settings, Value
from vnuma.vsphere.faults import fault_name

_SPEC = source(f"{API}vim.vm.ConfigSpec.html")
_RECONFIGURE = source(f"{API}vim.VirtualMachine.html#reconfigure")
_ALLOCATION = source(f"{API}vim.ResourceAllocationInfo.html")
_SHARES = source(f"{API}vim.SharesInfo.html")
_ARGUMENT = "InvalidArgument"


@source(f"{API}vim.fault.ConcurrentAccess.html")
def test_version_stale_is_refused(asked: Clone) -> None:
    """A reconfigure changes changeVersion; a stale one is ConcurrentAccess, and changes nothing."""
    stale = asked.vm().change_version
    asked.asked_for(**{KEY: DEFAULT if asked.settings().get(KEY) != DEFAULT else None})
    vm = asked.vm()
    option = vim.option.OptionValue(key=KEY, value="10")
    spec = vim.vm.ConfigSpec(changeVersion=stale, extraConfig=[option])
    seen = asked.refusal_of([Edit(KEY, vm.settings.get(KEY), "10")], spec)
    kept = asked.settings() == vm.settings
    expect((vm.change_version != stale, seen, kept), (True, "ConcurrentAccess", True))


@_RECONFIGURE
def test_change_all_or_nothing(asked: Clone) -> None:
    """One refused part refuses the whole request: nothing is stored."""
    before = asked.settings()
    shares = "high" if before["cpuShares"] != "high" else "low"
    seen = asked.refusal(cpuShares=shares, memoryReservation=-4)
    expect((seen != ACCEPTED, asked.settings() == before), (True, True))


@_SPEC
def test_change_cores_per_socket(asked: Clone) -> None:
    """Cores per socket that divide the vCPUs read back as asked."""
    cores = other_cores(asked.settings())
    expect(asked.asked_for(numCoresPerSocket=cores)["numCoresPerSocket"], cores)


@_SPEC
def test_change_automatic_cores(asked: Clone) -> None:
    """From hardware version 20, cores per socket of 0 make them automatic."""
    asked.require_topology_fields()
    if asked.settings()["autoCoresPerSocket"]:
        pytest.skip("automatic already")
    expect(asked.asked_for(numCoresPerSocket=0)["autoCoresPerSocket"], True)


@source(f"{API}vim.vm.VirtualNuma.html")
def test_change_cores_per_numa_node(asked: Clone) -> None:
    """From hardware version 20, cores per NUMA node read back as asked, and are then not automatic."""
    asked.require_topology_fields()
    vcpus = asked.settings()["numCPUs"]
    after = asked.asked_for(coresPerNumaNode=vcpus)
    expect((after["coresPerNumaNode"], after["autoCoresPerNumaNode"]), (vcpus, False))


@_SPEC
def test_change_affinity(asked: Clone) -> None:
    """CPU affinity to as many logical CPUs as vCPUs reads back as that set."""
    wanted = cpus_for(asked.settings())
    expect(asked.asked_for(cpuAffinity=wanted)["cpuAffinity"] == wanted, True)


@_SPEC
def test_change_affinity_cleared(asked: Clone) -> None:
    """An empty set of CPUs removes the affinity."""
    asked.asked_for(cpuAffinity=cpus_for(asked.settings()))
    expect(asked.asked_for(cpuAffinity=())["cpuAffinity"], ())


@_SPEC
def test_change_lock_moves_the_reservation(asked: Clone) -> None:
    """Locking the reservation to all memory makes it the VM's memory."""
    after = asked.asked_for(memoryReservationLockedToMax=True)
    expect(after["memoryReservation"] == after["memoryMB"], True)


@_SPEC
def test_change_unlock_then_lower(asked: Clone) -> None:
    """Once unlocked, the reservation can be lowered."""
    asked.asked_for(memoryReservationLockedToMax=True)
    after = asked.asked_for(memoryReservationLockedToMax=False, memoryReservation=0)
    expect(after["memoryReservation"], 0)


@_ALLOCATION
def test_change_part_of_an_allocation(asked: Clone) -> None:
    """A request for a reservation alone keeps limit and shares."""
    before = asked.asked_for(memoryReservationLockedToMax=False, memoryReservation=0, memoryShares="high")
    after = asked.asked_for(memoryReservation=4)
    kept = ("memoryLimit", "memoryShares")
    expect([after[name] for name in kept], [before[name] for name in kept])


@_SHARES
def test_change_shares_by_number(asked: Clone) -> None:
    """Custom shares read back as their number."""
    expect(asked.asked_for(cpuShares=1234)["cpuShares"], 1234)


@source(f"{API}vim.LatencySensitivity.html")
def test_change_latency_sensitivity(asked: Clone) -> None:
    """Latency sensitivity reads back as asked."""
    asked.asked_for(latencySensitivity="high")
    seen = str(asked.settings()["latencySensitivity"])
    asked.asked_for(latencySensitivity="normal")
    expect(seen, "high")


@_SPEC
def test_change_reboot_power_off(asked: Clone) -> None:
    """From API 8.0.0.1 the mark that the next reboot ends powered off can be set and removed."""
    if not asked.session.knows(vim.vm.ConfigSpec, "rebootPowerOff"):
        pytest.skip(f"API {asked.session.about.api_version}")
    seen = asked.asked_for(rebootPowerOff=True)["rebootPowerOff"]
    expect((seen, asked.asked_for(rebootPowerOff=False)["rebootPowerOff"]), (True, False))


@_SPEC
def test_key_is_stored(asked: Clone) -> None:
    """A key of extraConfig reads back as sent."""
    expect(asked.asked_for(**{KEY: DEFAULT}).get(KEY), DEFAULT)


@_SPEC
def test_key_empty_is_removed(asked: Clone) -> None:
    """An empty value removes a key."""
    asked.asked_for(**{KEY: DEFAULT})
    expect(asked.asked_for(**{KEY: None}).get(KEY), None)


Asking = Callable[[Settings], Mapping[str, Value]]


def refused(id_: str, what: str, fault: str, asking: Asking) -> object:
    """A parameter of a belief: `asking` names the settings that are refused with `fault`."""
    page = f"{API}{'vmodl' if fault == _ARGUMENT else 'vim'}.fault.{fault}.html"
    return pytest.param(what, fault, asking, id=id_, marks=source(page))


def _cores_that_do_not_divide(settings: Settings) -> Mapping[str, Value]:
    vcpus = number(settings, "numCPUs")
    return {"numCoresPerSocket": max(vcpus - 1, 2) if vcpus != 2 else 3}


def _one_cpu(settings: Settings) -> Mapping[str, Value]:
    return {"cpuAffinity": (0,)} if number(settings, "numCPUs") > 1 else pytest.skip("a VM with one vCPU")


@pytest.mark.parametrize(
    ("what", "fault", "asking"),
    [
        refused(
            "cores_do_not_divide",
            "A number of cores per socket that does not divide the vCPUs",
            _ARGUMENT,
            _cores_that_do_not_divide,
        ),
        refused("affinity_too_small", "Affinity to fewer logical CPUs than vCPUs", _ARGUMENT, _one_cpu),
        refused(
            "odd_memory",
            "Memory that is not a multiple of 4 MB",
            _ARGUMENT,
            lambda s: {"memoryMB": number(s, "memoryMB") + 1},
        ),
    ],
)
def test_refused(asked: Clone, what: str, fault: str, asking: Asking) -> None:
    """{what} is {fault}."""
    expect(asked.refusal(**asking(asked.settings())), fault)


@source(f"{API}vim.VirtualMachine.html#shutdownGuest")
def test_refused_shutdown_while_off(asked: Clone) -> None:
    """A guest shutdown while off is InvalidPowerState, which names the state."""
    asked.fence()
    seen = "accepted"
    try:
        asked.ref.ShutdownGuest()
    except vim.fault.InvalidPowerState as fault:
        seen = str(fault.existingState)
    except vmodl.MethodFault as fault:
        seen = fault_name(fault)
    expect(seen, "poweredOff")
