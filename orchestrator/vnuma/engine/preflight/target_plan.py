"""A study on one VM or machine, whichever it is: what may be asked of its plan without knowing that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeVar

from vnuma.engine.preflight.findings import Finding

if TYPE_CHECKING:
    from vnuma.engine.preflight.machine_plan import MachinePlan
    from vnuma.engine.preflight.vm_plan import VmPlan

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class TargetPlan(ABC):
    """`key` identifies the target across runs, whatever an inventory calls it; `path` is for reports.

    `host_name` is the host that it loads. `boots`: how often it is booted; of a machine, its passes.
    `seconds` is how long that takes, as assumed. `simulated`: the lab's or an emulator's name for what stands
    in for it; None for the real thing.
    """

    name: str
    key: str
    path: str
    host_name: str
    findings: tuple[Finding, ...]
    """What would spoil the study there, the worst first."""
    boots: int
    seconds: float
    simulated: str | None
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Arms that are not measured, each with its reason."""

    def documents(self) -> dict[str, dict[str, object]]:
        """Facts about it, by scope, for the store."""
        return {"preflight": {f"{n} {one.id}": asdict(one) for n, one in enumerate(self.findings, start=1)}}

    @abstractmethod
    def refuse_if_held(self) -> None:
        """Raise VmHeld when another controller has it."""

    @abstractmethod
    def by_kind(self, vm: Callable[[VmPlan], T], machine: Callable[[MachinePlan], T]) -> T:
        """What `vm` makes of the plan of a VM, or `machine` of a machine's: for what only one of them has."""
