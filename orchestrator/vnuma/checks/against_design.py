"""Compare a site with a design: settings that differ, and VMs that only one of them has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vnuma.checks.facts import EXTRA_CONFIG, HARDWARE
from vnuma.domain.vm.change import Author, Edit, as_written, change_to
from vnuma.domain.vm.estate import Declared, Estate, EstateVm
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import (
    DERIVED,
    TYPED,
    WRITTEN_BY_ESXI,
    Settings,
    Value,
    is_evidence,
    is_extra_config,
    is_governed,
)

DRIFT = "drift"
"""In place of a rule for findings over time: the VM differs from its design."""

_NOT_READ = "this source does not show it"


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that differs from the design. `author` is who changed it, or why that is unknown."""

    setting: str
    design: Value
    now: Value
    author: Author | str = ""


@dataclass(frozen=True)
class DriftedVm:
    """A VM that differs from its design; `facts` are its present ones."""

    facts: VmFacts
    source: str
    design: str
    """Name of the design's file."""
    declared: Declared | None
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class OneSided:
    """A VM that only the design or only the site has. `where` names that design or source."""

    name: str
    where: str
    why: str = ""


@dataclass(frozen=True)
class Drift:
    """All differences. `not_compared` counts VMs by setting and reason."""

    designs: tuple[str, ...]
    compared: int
    """VMs that both have."""
    vms: tuple[DriftedVm, ...]
    only_design: tuple[OneSided, ...] = ()
    unmatched: tuple[OneSided, ...] = ()
    """VMs of a design that may exist: several have the name, or it could not be read."""
    only_site: tuple[OneSided, ...] = ()
    not_compared: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def settings(self) -> int:
        """The number of differing settings, over all VMs."""
        return sum(len(vm.differences) for vm in self.vms)

    @property
    def any(self) -> bool:
        """Whether anything differs from the design, apart from VMs that it does not name."""
        return bool(self.vms or self.only_design)


Asked = Callable[[Estate, EstateVm], bool]


def compare_with_design(
    designs: Sequence[Estate], present: Sequence[Estate], admits: Asked, named: Callable[[str], bool]
) -> Drift:
    """The drift of the VMs that `admits` accepts; `named` tells which names were requested.

    An earlier snapshot identifies VMs by identity, any other design by a name that only one VM has.
    """
    find, whole = _finder(present), all(estate.whole for estate in present)
    vms, missing = list[DriftedVm](), list[OneSided]()
    not_compared: Counter[tuple[str, str]] = Counter()
    matched, compared = set[int](), 0
    for design in designs:
        for planned in design.vms:
            found = find(planned.facts)
            if isinstance(found, str):
                if named(planned.facts.name) and (whole or found):
                    missing.append(OneSided(planned.facts.name, design.source, found))
                continue
            estate, vm = found
            matched.add(id(vm))
            if not admits(estate, vm):
                continue
            compared += 1
            edits, silent = _edits(planned, vm)
            not_compared.update(silent)
            if edits:
                different = tuple(Difference(edit.setting, edit.after, edit.before) for edit in edits)
                vms.append(DriftedVm(vm.facts, estate.source, design.source, planned.declared, different))
    only_site = tuple(
        OneSided(vm.facts.name, estate.source)
        for estate in present
        for vm in estate.vms
        if id(vm) not in matched and admits(estate, vm)
    )
    return Drift(
        tuple(design.source for design in designs),
        compared,
        tuple(sorted(vms, key=lambda one: (one.facts.name, one.facts.path))),
        only_design=tuple(one for one in missing if not one.why),
        unmatched=tuple(one for one in missing if one.why),
        only_site=only_site,
        not_compared=not_compared,
    )


def _finder(present: Sequence[Estate]) -> Callable[[VmFacts], tuple[Estate, EstateVm] | str]:
    """Finds a design's VM on a site by identity, else by name; or says why not, empty if there is none."""
    unseen = {item.name: item.why for estate in present for item in estate.unseen if item.kind == "vm"}
    by_key: dict[str, tuple[Estate, EstateVm]] = {}
    by_name: dict[str, list[tuple[Estate, EstateVm]]] = defaultdict(list)
    for estate in present:
        for vm in estate.vms:
            by_key[vm.facts.key] = estate, vm
            by_name[vm.facts.name].append((estate, vm))

    def find(facts: VmFacts) -> tuple[Estate, EstateVm] | str:
        found = [by_key[facts.key]] if facts.key in by_key else by_name.get(facts.name, [])
        if len(found) > 1:
            return f"{len(found)} VMs have this name"
        why = f"it could not be read: {unseen[facts.name]}" if facts.name in unseen else ""
        return found[0] if found else why

    return find


def _edits(planned: EstateVm, vm: EstateVm) -> tuple[list[Edit], set[tuple[str, str]]]:
    """The differences (before: now, after: the design); and settings not compared, with the reason."""
    now = vm.facts.settings
    silent = {(name, why) for name, why in planned.absent.items() if name in TYPED or name in _BESIDE}
    wanted: dict[str, Value] = {}
    for name, value in _wanted(planned, now):
        why = vm.absent.get(EXTRA_CONFIG if is_extra_config(name) else name)
        if why or (name in TYPED and name not in now):
            silent.add((name, why or _NOT_READ))
        else:
            wanted[name] = value
    if wanted.get("memoryReservationLockedToMax") is True and now.get("memoryReservationLockedToMax") is True:
        wanted.pop("memoryReservation", None)  # vSphere moves the reservation with the lock
    edits = list(change_to(now, wanted))
    version = planned.facts.hardware_version
    if HARDWARE not in planned.absent and version and version != vm.facts.hardware_version:
        edits.append(Edit(HARDWARE, vm.facts.hardware_version, version))
    return edits, {item for item in silent if item[0] not in DERIVED}


_BESIDE = {EXTRA_CONFIG, HARDWARE}


def _wanted(planned: EstateVm, now: Settings) -> Iterator[tuple[str, Value]]:
    """What a design says about settings. Keys that it could name and does not are not set."""
    settings = planned.facts.settings
    spelled = {name.lower(): name for name in now}
    for name in settings:
        if _is_compared(name) and name not in planned.absent:
            yield spelled.get(name.lower(), name), as_written(settings, name)
    if EXTRA_CONFIG not in planned.absent:
        named = {name.lower() for name in settings}
        for name in filter(_is_compared, now):
            if is_extra_config(name) and is_governed(name) and name.lower() not in named:
                yield name, None


def _is_compared(name: str) -> bool:
    return not (name in DERIVED or is_evidence(name) or name.lower() in WRITTEN_BY_ESXI)
