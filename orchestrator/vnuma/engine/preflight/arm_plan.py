"""What each arm would change on a VM and show its guest, and which arms nobody could tell apart. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.recipe import desired_settings
from vnuma.domain.study.study import Study
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.change import Change, settings_after
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Value
from vnuma.domain.workloads.settings import WorkloadSettings, maxdop_of
from vnuma.engine.cell.shape import plan_shape
from vnuma.errors import ArmImpossible

# What the guest shows differently for another value; every other setting is the host's affair.
_SEEN_INSIDE = frozenset({"numCPUs", "numCoresPerSocket", "memoryMB", "coresPerNumaNode"})


@dataclass(frozen=True)
class GuestView:
    """What Windows and SQL Server would show of an arm.

    `factors` are those of the workload but MAXDOP, with their values: what is done inside differs by them.
    """

    vcpus: int
    cores_per_socket: int
    node_sizes: tuple[int, ...]
    sql_cpu_nodes: int
    memory_mb: Value
    maxdop: int
    factors: tuple[tuple[str, str], ...] = ()


_DIFFERENCE = {
    "vcpus": "vCPUs",
    "cores_per_socket": "sockets",
    "node_sizes": "vNUMA nodes",
    "sql_cpu_nodes": "SQL CPU nodes",
    "memory_mb": "memory",
    "maxdop": "MAXDOP",
}


@dataclass(frozen=True)
class ArmPlan:
    """One arm on one VM: what changes from the VM as it is now, and what the guest is predicted to see.

    An arm that this VM or host cannot have has none of these, but the reason, its rule and what helps.
    """

    label: str
    change: Change | None = None
    prediction: Prediction | None = None
    view: GuestView | None = None
    host_side: Mapping[str, Value] | None = None
    """The settings that the arm gives the VM and the guest does not show."""
    node_factors: tuple[tuple[str, str], ...] = ()
    """The workload's choice of NUMA nodes, where it has one."""
    impossible: str | None = None
    rule: str = ""
    fix: str | None = None


@dataclass(frozen=True)
class IndistinguishableArms:
    """Arms that are the same in what was asked, and what differs all the same."""

    arms: tuple[str, ...]
    differing: tuple[str, ...]


def plan_arm(study: Study, label: str, vm: VmFacts, host: HostFacts) -> ArmPlan:
    """Work out one arm, without touching anything."""
    arm = study.arm(label)
    try:
        planned = plan_shape(arm, vm, host)
        desired = desired_settings(arm, vm, host)
    except ArmImpossible as error:
        return ArmPlan(label, impossible=error.what, rule=error.rule, fix=error.fix)
    after = settings_after(vm.settings, desired)
    workload = study.workload_of(label)
    view = _view(arm, workload, planned.prediction, after)
    hidden = {name: after.get(name) for name in desired if name not in _SEEN_INSIDE}
    nodes = workload.chosen(workload.node_factors)
    return ArmPlan(label, planned.change, planned.prediction, view, hidden, nodes)


def _view(
    arm: Arm, workload: WorkloadSettings, prediction: Prediction, after: Mapping[str, Value]
) -> GuestView:
    sizes = prediction.node_sizes
    stated = after.get("numCoresPerSocket")
    # Automatic cores per socket become the size of a node at power-on.
    per_socket = stated if isinstance(stated, int) and stated and arm.cores_per_socket else gcd(*sizes)
    return GuestView(
        sum(sizes),
        per_socket,
        sizes,
        prediction.cpu_nodes(soft_numa=arm.soft_numa != "off"),
        after.get("memoryMB"),
        maxdop_of(workload),
        workload.chosen(workload.factors - {"maxdop"}),
    )


def same_to_the_guest(arms: Iterable[ArmPlan]) -> list[IndistinguishableArms]:
    """Arms that neither guest nor SQL Server could tell apart: only the host's settings differ, if any."""
    return [
        IndistinguishableArms(
            tuple(arm.label for arm in group), _differing([arm.host_side or {} for arm in group])
        )
        for group in _groups(arms, lambda arm: arm.view)
    ]


def same_nodes(arms: Iterable[ArmPlan]) -> list[IndistinguishableArms]:
    """Arms with the same vNUMA nodes, used alike, that differ in something else inside."""
    found = []
    for group in _groups(arms, lambda arm: arm.view and (arm.view.node_sizes, arm.node_factors)):
        views = [arm.view for arm in group if arm.view]
        seen = tuple(
            words for name, words in _DIFFERENCE.items() if len({getattr(view, name) for view in views}) > 1
        )
        differing = (*seen, *_differing([dict(view.factors) for view in views]))
        if differing:
            found.append(IndistinguishableArms(tuple(arm.label for arm in group), differing))
    return found


def distinguished_by_workload(arms: Iterable[ArmPlan]) -> list[IndistinguishableArms]:
    """Arms of one shape on whose vNUMA nodes the workload does different things: that is what is compared."""
    found = []
    for group in _groups(arms, lambda arm: arm.view and replace(arm.view, factors=())):
        differing = _differing([dict(arm.node_factors) for arm in group])
        if differing:
            found.append(IndistinguishableArms(tuple(arm.label for arm in group), differing))
    return found


def doubts(arms: Iterable[ArmPlan]) -> dict[str, list[str]]:
    """Why predictions are of low confidence: each reason with its arms."""
    found: dict[str, list[str]] = {}
    for arm in arms:
        if arm.prediction and arm.prediction.confidence == "low":
            found.setdefault(arm.prediction.because, []).append(arm.label)
    return found


def _groups(arms: Iterable[ArmPlan], key: Callable[[ArmPlan], Hashable]) -> list[list[ArmPlan]]:
    groups: dict[Hashable, list[ArmPlan]] = {}
    for arm in arms:
        if arm.prediction:
            groups.setdefault(key(arm), []).append(arm)
    return [group for group in groups.values() if len(group) > 1]


def _differing(settings: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    names = sorted({name for one in settings for name in one})
    return tuple(name for name in names if len({one.get(name) for one in settings}) > 1)
