"""Beliefs about changing a VM that is off: what is stored, what is refused, and by which fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyVmomi import vim, vmodl

from vnuma.domain.contract.belief import Belief, NotEvaluableError, expect
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Settings, Value
from vnuma.vsphere.contract.asked import ACCEPTED, API, WHILE_OFF, ChangedVm, cpus_for, number
from vnuma.vsphere.faults import fault_name

CONFIG_SPEC = f"{API}vim.vm.ConfigSpec.html"
KEY = "numa.vcpu.min"
"""An extraConfig key that belongs to the baseline. Its default is written, so that nothing else changes."""
DEFAULT = "9"

_FAULTS = f"{API}vim.VirtualMachine.html#reconfigure"
_CONCURRENT = f"{API}vim.fault.ConcurrentAccess.html"


def other_cores(settings: Settings) -> int:
    """A possible number of cores per socket other than the VM's own. Raises NotEvaluableError."""
    vcpus, now = number(settings, "numCPUs"), settings["numCoresPerSocket"]
    if vcpus < 2:
        raise NotEvaluableError("a VM with one vCPU")
    return 1 if now == vcpus else vcpus


def key_spec(key: str, value: str) -> vim.vm.ConfigSpec:
    """A request for one extraConfig key."""
    return vim.vm.ConfigSpec(extraConfig=[vim.option.OptionValue(key=key, value=value)])


@WHILE_OFF.declare("version.moves", CONFIG_SPEC)
def _moves(asked: ChangedVm) -> str:
    """A reconfigure gives the VM another changeVersion."""
    before = asked.vm().change_version
    asked.asked_for(**{KEY: DEFAULT if asked.settings().get(KEY) != DEFAULT else None})
    return expect(asked.vm().change_version != before, True)


@WHILE_OFF.declare("version.stale_is_refused", _CONCURRENT)
def _stale(asked: ChangedVm) -> str:
    """A stale changeVersion is ConcurrentAccess, and changes nothing."""
    stale = asked.vm().change_version
    asked.asked_for(**{KEY: DEFAULT if asked.settings().get(KEY) != DEFAULT else None})
    before = asked.settings()
    spec = key_spec(KEY, "10")
    spec.changeVersion = stale
    seen = asked.refusal_of([Edit(KEY, before.get(KEY), "10")], spec)
    return expect((seen, asked.settings() == before), ("ConcurrentAccess", True))


@WHILE_OFF.declare("version.current_is_taken", _CONCURRENT)
def _current(asked: ChangedVm) -> str:
    """A reconfigure with the current changeVersion succeeds."""
    vm = asked.vm()
    spec = key_spec(KEY, DEFAULT)
    spec.changeVersion = vm.change_version
    return expect(asked.refusal_of([Edit(KEY, vm.settings.get(KEY), DEFAULT)], spec), ACCEPTED)


@WHILE_OFF.declare("change.nothing", _FAULTS)
def _nothing(asked: ChangedVm) -> str:
    """An empty reconfigure succeeds."""
    return expect(asked.refusal_of([], vim.vm.ConfigSpec()), ACCEPTED)


@WHILE_OFF.declare("change.all_or_nothing", _FAULTS)
def _atomic(asked: ChangedVm) -> str:
    """One refused part refuses the whole request: nothing is stored."""
    before = asked.settings()
    shares = "high" if before["cpuShares"] != "high" else "low"
    seen = asked.refusal(cpuShares=shares, memoryReservation=-4)
    return expect((seen != ACCEPTED, asked.settings() == before), (True, True))


def _stored(settings: Mapping[str, Value], name: str, value: Value) -> str:
    return expect(settings.get(name), value)


@WHILE_OFF.declare("change.cores_per_socket", CONFIG_SPEC)
def _cores(asked: ChangedVm) -> str:
    """Cores per socket that divide the vCPUs read back as asked."""
    cores = other_cores(asked.settings())
    return _stored(asked.asked_for(numCoresPerSocket=cores), "numCoresPerSocket", cores)


@WHILE_OFF.declare("change.automatic_cores", CONFIG_SPEC)
def _automatic(asked: ChangedVm) -> str:
    """From hardware version 20, cores per socket of 0 make them automatic."""
    asked.require_topology_fields()
    if asked.settings()["autoCoresPerSocket"]:
        raise NotEvaluableError("automatic already")
    return _stored(asked.asked_for(numCoresPerSocket=0), "autoCoresPerSocket", True)


@WHILE_OFF.declare("change.cores_per_numa_node", f"{API}vim.vm.VirtualNuma.html")
def _per_node(asked: ChangedVm) -> str:
    """From hardware version 20, cores per NUMA node read back as asked, and are then not automatic."""
    asked.require_topology_fields()
    vcpus = asked.settings()["numCPUs"]
    after = asked.asked_for(coresPerNumaNode=vcpus)
    return expect((after["coresPerNumaNode"], after["autoCoresPerNumaNode"]), (vcpus, False))


@WHILE_OFF.declare("change.affinity", CONFIG_SPEC)
def _affinity(asked: ChangedVm) -> str:
    """CPU affinity to as many logical CPUs as vCPUs reads back as that set."""
    wanted = cpus_for(asked.settings())
    return expect(asked.asked_for(cpuAffinity=wanted)["cpuAffinity"] == wanted, True)


@WHILE_OFF.declare("change.affinity_cleared", CONFIG_SPEC)
def _cleared(asked: ChangedVm) -> str:
    """An empty set of CPUs removes the affinity."""
    asked.asked_for(cpuAffinity=cpus_for(asked.settings()))
    return _stored(asked.asked_for(cpuAffinity=()), "cpuAffinity", ())


@WHILE_OFF.declare("change.affinity_left_out", CONFIG_SPEC)
def _left_out(asked: ChangedVm) -> str:
    """A request without an affinity keeps the present one."""
    wanted = cpus_for(asked.settings())
    asked.asked_for(cpuAffinity=wanted)
    kept = asked.asked_for(cpuShares="high" if asked.settings()["cpuShares"] != "high" else "low")
    asked.asked_for(cpuAffinity=())
    return expect(kept["cpuAffinity"] == wanted, True)


@WHILE_OFF.declare("change.lock_moves_the_reservation", CONFIG_SPEC)
def _lock(asked: ChangedVm) -> str:
    """Locking the reservation to all memory makes it the VM's memory."""
    after = asked.asked_for(memoryReservationLockedToMax=True)
    return expect(after["memoryReservation"] == after["memoryMB"], True)


@WHILE_OFF.declare("change.unlock_then_lower", CONFIG_SPEC)
def _unlock(asked: ChangedVm) -> str:
    """Once unlocked, the reservation can be lowered."""
    asked.asked_for(memoryReservationLockedToMax=True)
    return _stored(
        asked.asked_for(memoryReservationLockedToMax=False, memoryReservation=0), "memoryReservation", 0
    )


@WHILE_OFF.declare("change.part_of_an_allocation", f"{API}vim.ResourceAllocationInfo.html")
def _partial(asked: ChangedVm) -> str:
    """A request for a reservation alone keeps limit and shares."""
    before = asked.asked_for(memoryReservationLockedToMax=False, memoryReservation=0, memoryShares="high")
    after = asked.asked_for(memoryReservation=4)
    kept = ("memoryLimit", "memoryShares")
    return expect([after[name] for name in kept], [before[name] for name in kept])


@WHILE_OFF.declare("change.shares_by_level", f"{API}vim.SharesInfo.html")
def _level(asked: ChangedVm) -> str:
    """Shares of the level `high` are twice the number of those of `normal`."""
    asked.asked_for(cpuShares="normal")
    normal = asked.value("config.cpuAllocation.shares").shares
    asked.asked_for(cpuShares="high")
    return expect(asked.value("config.cpuAllocation.shares").shares, 2 * normal)


@WHILE_OFF.declare("change.shares_by_number", f"{API}vim.SharesInfo.html")
def _custom(asked: ChangedVm) -> str:
    """Custom shares read back as their number."""
    return _stored(asked.asked_for(cpuShares=1234), "cpuShares", 1234)


@WHILE_OFF.declare("change.latency_sensitivity", f"{API}vim.LatencySensitivity.html")
def _latency(asked: ChangedVm) -> str:
    """Latency sensitivity reads back as asked."""
    asked.asked_for(latencySensitivity="high")
    seen = str(asked.settings()["latencySensitivity"])
    asked.asked_for(latencySensitivity="normal")
    return expect(seen, "high")


@WHILE_OFF.declare("change.reboot_power_off", CONFIG_SPEC)
def _reboot_off(asked: ChangedVm) -> str:
    """From API 8.0.0.1 the mark that the next reboot ends powered off can be set and removed."""
    if not asked.session.knows(vim.vm.ConfigSpec, "rebootPowerOff"):
        raise NotEvaluableError(f"API {asked.session.about.api_version}")
    seen = asked.asked_for(rebootPowerOff=True)["rebootPowerOff"]
    return expect((seen, asked.asked_for(rebootPowerOff=False)["rebootPowerOff"]), (True, False))


@WHILE_OFF.declare("key.is_stored", CONFIG_SPEC)
def _key(asked: ChangedVm) -> str:
    """A key of extraConfig reads back as sent."""
    return _stored(asked.asked_for(**{KEY: DEFAULT}), KEY, DEFAULT)


@WHILE_OFF.declare("key.empty_is_removed", CONFIG_SPEC)
def _removed(asked: ChangedVm) -> str:
    """An empty value removes a key."""
    asked.asked_for(**{KEY: DEFAULT})
    return _stored(asked.asked_for(**{KEY: None}), KEY, None)


@contextmanager
def _written(asked: ChangedVm, key: str, text: str, typed: Edit) -> Iterator[str]:
    """The outcome of writing a key that a typed field owns; the key is then reset, if it was stored.

    `typed` is the edit that the request makes if the key does take effect.
    """
    before = asked.settings().get(key)
    try:
        yield asked.refusal_of([typed, Edit(key, before, text)], key_spec(key, text))
    finally:
        asked.writer.take_back(key, before)


@WHILE_OFF.declare("key.of_cores_is_ignored", CONFIG_SPEC)
def _owned_cores(asked: ChangedVm) -> str:
    """`cpuid.coresPerSocket` in extraConfig is ignored without a word: the typed field decides."""
    before = asked.settings()
    cores = other_cores(before)
    typed = Edit("numCoresPerSocket", before["numCoresPerSocket"], cores)
    with _written(asked, "cpuid.coresPerSocket", str(cores), typed) as seen:
        kept = asked.settings()["numCoresPerSocket"] == before["numCoresPerSocket"]
    return expect((seen, kept), (ACCEPTED, True))


@WHILE_OFF.declare("key.of_affinity_is_ignored", CONFIG_SPEC)
def _owned_affinity(asked: ChangedVm) -> str:
    """`sched.cpu.affinity` in extraConfig is ignored without a word: the typed field decides."""
    before = asked.asked_for(cpuAffinity=())
    vcpus = cpus_for(before)
    words = ",".join(map(str, vcpus))
    with _written(asked, "sched.cpu.affinity", words, Edit("cpuAffinity", (), vcpus)) as seen:
        now = asked.settings()["cpuAffinity"]
    return expect((seen, now), (ACCEPTED, ()))


def refused(
    id_: str, says: str, fault: str, asking: Callable[[Settings], Mapping[str, Value]]
) -> Belief[ChangedVm]:
    """The assumption that changes to what `asking` names are refused with that fault."""

    def look(asked: ChangedVm) -> str:
        return expect(asked.refusal(**asking(asked.settings())), fault)

    source = f"{API}{'vmodl' if fault == 'InvalidArgument' else 'vim'}.fault.{fault}.html"
    return Belief(id_, f"{says} is {fault}.", source, look)


def _more_than_one(settings: Settings) -> Mapping[str, Value]:
    if number(settings, "numCPUs") < 2:
        raise NotEvaluableError("a VM with one vCPU")
    return {"cpuAffinity": (0,)}


def _limit_below(settings: Settings) -> Mapping[str, Value]:
    if settings["memoryReservationLockedToMax"]:
        return {"memoryLimit": 4}
    return {"memoryReservation": 8, "memoryLimit": 4}


_ARGUMENT = "InvalidArgument"
for _id, _says, _fault, _asking in (
    ("no_vcpus", "A negative number of vCPUs", _ARGUMENT, lambda s: {"numCPUs": -1}),
    (
        "too_many_vcpus",
        "A number of 100,000 vCPUs",
        "NumVirtualCpusNotSupported",
        lambda s: {"numCPUs": 100_000},
    ),
    (
        "cores_do_not_divide",
        "A number of cores per socket that does not divide the vCPUs",
        _ARGUMENT,
        lambda s: {"numCoresPerSocket": max(number(s, "numCPUs") - 1, 2) if number(s, "numCPUs") != 2 else 3},
    ),
    (
        "too_many_cores",
        "A number of 1,000 cores per socket",
        "NumVirtualCoresPerSocketNotSupported",
        lambda s: {"numCoresPerSocket": 1000},
    ),
    (
        "affinity_to_no_cpu",
        "Affinity to a logical CPU that the host does not have",
        _ARGUMENT,
        lambda s: {"cpuAffinity": tuple(100_000 + cpu for cpu in cpus_for(s))},
    ),
    ("affinity_too_small", "Affinity to fewer logical CPUs than vCPUs", _ARGUMENT, _more_than_one),
    (
        "memory_affinity_to_no_node",
        "Memory affinity to a NUMA node that the host does not have",
        _ARGUMENT,
        lambda s: {"memoryAffinity": (1000,)},
    ),
    (
        "odd_memory",
        "Memory that is not a multiple of 4 MB",
        _ARGUMENT,
        lambda s: {"memoryMB": number(s, "memoryMB") + 1},
    ),
    ("negative_reservation", "A negative reservation", _ARGUMENT, lambda s: {"memoryReservation": -4}),
    (
        "reservation_beyond_the_host",
        "A reservation of more memory than the host has",
        _ARGUMENT,
        lambda s: {"memoryReservation": 1 << 40},
    ),
    ("limit_below_reservation", "A memory limit below the reservation", _ARGUMENT, _limit_below),
    ("negative_limit", "A CPU limit below -1", _ARGUMENT, lambda s: {"cpuLimit": -2}),
    (
        "cpu_reservation_beyond_the_vm",
        "A CPU reservation of more than the vCPUs can use",
        _ARGUMENT,
        lambda s: {"cpuReservation": 1 << 40},
    ),
):
    WHILE_OFF.add(refused(f"refused.{_id}", _says, _fault, _asking))


@WHILE_OFF.declare("refused.numa_node_of_no_size", f"{API}vmodl.fault.InvalidArgument.html")
def _no_size(asked: ChangedVm) -> str:
    """A negative number of cores per NUMA node is InvalidArgument."""
    asked.require_topology_fields()
    return expect(asked.refusal(coresPerNumaNode=-1), "InvalidArgument")


@WHILE_OFF.declare("refused.shutdown_while_off", f"{API}vim.VirtualMachine.html#shutdownGuest")
def _shutdown(asked: ChangedVm) -> str:
    """A guest shutdown while off is InvalidPowerState, which names the state."""
    asked.writer.fence()
    try:
        asked.ref.ShutdownGuest()
    except vim.fault.InvalidPowerState as fault:
        return expect(str(fault.existingState), "poweredOff")
    except vmodl.MethodFault as fault:
        return expect(fault_name(fault), "InvalidPowerState")
    return expect("none", "InvalidPowerState")
