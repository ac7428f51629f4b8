"""Plan a study on every target, by kind. Touches nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from vnuma.domain.study.study import Study
from vnuma.engine.access.target import Target, TargetKind
from vnuma.engine.preflight.machine_plan import plan_machines
from vnuma.engine.preflight.permit import Permit
from vnuma.engine.preflight.target_plan import TargetPlan
from vnuma.engine.preflight.vm_plan import plan_vms


class Planner(Protocol):
    """Plans the targets of one kind."""

    def __call__(
        self, study: Study, targets: Mapping[str, Target], permit: Permit, inventory: Path, /
    ) -> Mapping[str, TargetPlan]:
        """Their plans, by name. Changes nothing."""


_BY_KIND: Mapping[TargetKind, Planner] = {TargetKind.VM: plan_vms, TargetKind.MACHINE: plan_machines}


def plan_all(
    study: Study, targets: Mapping[str, Target], permit: Permit, inventory: Path
) -> dict[str, TargetPlan]:
    """Plan the study on every VM and machine, in the study's order. Changes nothing."""
    plans: dict[str, TargetPlan] = {}
    for kind in TargetKind:
        of_kind = {name: target for name, target in targets.items() if target.kind is kind}
        plans |= _BY_KIND[kind](study, of_kind, permit, inventory)
    return {name: plans[name] for name in targets}
