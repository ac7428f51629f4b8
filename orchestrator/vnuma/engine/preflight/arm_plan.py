"""What each arm changes on a VM and in its guest, and which arms cannot be told apart. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.desired_settings import desired_settings
from vnuma.domain.study.study import Study
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.change import Change, settings_after
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Value
from vnuma.domain.workloads.settings import WorkloadSettings
from vnuma.engine.cell.shape import plan_shape
from vnuma.errors import ArmImpossible

# Settings that change what the guest shows; all others affect only the host.
_SEEN_INSIDE = frozenset({"numCPUs", "numCoresPerSocket", "memoryMB", "coresPerNumaNode"})


@dataclass(frozen=True)
class GuestView:
    """What Windows and SQL Server would show of an arm.

    `factors` are those of the workload except MAXDOP, with their values, since they change the work inside.
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
    """One arm on one VM: the changes to the VM as it is now, and the guest's predicted topology.

    An arm that this VM or host cannot have has the reason, its rule and what helps instead.
    """

    label: str
    change: Change | None = None
    prediction: Prediction | None = None
    view: GuestView | None = None
    host_side: Mapping[str, Value] | None = None
    """The arm's settings of the VM that the guest does not show."""
    node_factors: tuple[tuple[str, str], ...] = ()
    """The NUMA nodes that the workload uses, where it has a choice."""
    impossible: str | None = None
    rule: str = ""
    fix: str | None = None


@dataclass(frozen=True)
class IndistinguishableArms:
    """Arms that look the same, and what differs nevertheless."""

    arms: tuple[str, ...]
    differing: tuple[str, ...]


def plan_arm(study: Study, label: str, vm: VmFacts, host: HostFacts) -> ArmPlan:
    """Plan one arm, without touching anything."""
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
    # Automatic cores per socket become the node's size at power-on.
    per_socket = stated if isinstance(stated, int) and stated and arm.cores_per_socket else gcd(*sizes)
    return GuestView(
        sum(sizes),
        per_socket,
        sizes,
        prediction.cpu_nodes(soft_numa=arm.soft_numa != "off"),
        after.get("memoryMB"),
        workload.maxdop_hint,
        workload.chosen(workload.factors - {"maxdop"}),
    )


def same_to_the_guest(arms: Iterable[ArmPlan]) -> list[IndistinguishableArms]:
    """Arms that neither guest nor SQL Server can tell apart: they differ in host settings at most."""
    return [
        IndistinguishableArms(
            tuple(arm.label for arm in group), _differing([arm.host_side or {} for arm in group])
        )
        for group in _groups(arms, lambda arm: arm.view)
    ]


def same_nodes(arms: Iterable[ArmPlan]) -> list[IndistinguishableArms]:
    """Arms with the same vNUMA nodes, used alike, that differ in something else inside the guest."""
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
    """Arms of one shape that differ only in what the workload does on the vNUMA nodes."""
    found = []
    for group in _groups(arms, lambda arm: arm.view and replace(arm.view, factors=())):
        differing = _differing([dict(arm.node_factors) for arm in group])
        if differing:
            found.append(IndistinguishableArms(tuple(arm.label for arm in group), differing))
    return found


def doubts(arms: Iterable[ArmPlan]) -> dict[str, list[str]]:
    """Reasons for low confidence in predictions, each with its arms."""
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
