"""An arm begins with the VM's own settings, not with what the arm before it has set. Pure."""

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
"""At every power-on: the VM's own are no one's choice."""

_LOCKED, _RESERVED = "memoryReservationLockedToMax", "memoryReservation"


def own_values(arms: Iterable[Arm], baseline: Settings, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """Every setting that some arm of a study sets, as the VM's baseline has it.

    What an arm keeps is the VM's own value: with these first and the arm's over them, its shape is the same
    whichever arm was measured before. Arms that this VM cannot have set nothing.
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
    """An arm's settings over the VM's own. A reservation that is locked to the memory is vSphere's to set."""
    both = {**own, **desired}
    if both.get(_LOCKED) is True and _RESERVED not in desired:
        both.pop(_RESERVED, None)
    return both
