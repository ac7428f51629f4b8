"""An arm starts from the VM's own settings, not from those of the arm before it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.recipe import AUTOSIZE_COOKIE, AUTOSIZE_MAX, desired_settings
from vnuma.domain.vm.change import asked
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Settings, Value
from vnuma.errors import ArmImpossible

_WRITTEN_BY_ESXI = frozenset({AUTOSIZE_COOKIE, AUTOSIZE_MAX})
"""Rewritten at every power-on, so the VM's values are not anybody's choice."""

_LOCKED, _RESERVED = "memoryReservationLockedToMax", "memoryReservation"


def own_values(arms: Iterable[Arm], baseline: Settings, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """Every setting that some arm of a study sets, with its value in the VM's baseline.

    Applying these first and an arm's settings over them gives the arm the same shape whichever arm was
    measured before. Impossible arms set nothing.
    """
    own = replace(vm, settings=baseline)
    names: set[str] = set()
    for arm in arms:
        try:
            names |= desired_settings(arm, own, host).keys()
        except ArmImpossible:
            continue
    if _LOCKED in names:  # vSphere then sets the reservation too
        names.add(_RESERVED)
    return {name: asked(baseline, name) for name in names - _WRITTEN_BY_ESXI}


def over_own(own: Settings, desired: Settings) -> dict[str, Value]:
    """An arm's settings over the VM's own. vSphere itself sets a reservation that is locked to the memory."""
    both = {**own, **desired}
    if both.get(_LOCKED) is True and _RESERVED not in desired:
        both.pop(_RESERVED, None)
    return both
