"""What the analysis reads: samples, cells and the design, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vnuma.domain.design import Order
from vnuma.domain.order import columns
from vnuma.domain.study import Study

Metric = Literal["elapsed_ms", "cpu_ms", "client_ms"]
METRICS: tuple[Metric, ...] = ("elapsed_ms", "cpu_ms", "client_ms")


@dataclass(frozen=True, slots=True)
class Sample:
    """What one iteration of a cell's valid attempt gave; times in ms, `size` in rows a side.

    `outcome` is `measured`, or anything else when there is no trustworthy time.
    """

    label: str
    arm: str
    block: int
    vm: str
    size: int
    form: str
    iteration: int
    warmup: bool
    outcome: str = "measured"
    elapsed_ms: float | None = None
    cpu_ms: float | None = None
    client_ms: float | None = None
    rows: int | None = None


@dataclass(frozen=True)
class CellRecord:
    """A planned cell and how it ended: `outcome` is the cell's state in the store.

    Only `valid` cells are analysed; `pending` and `skipped` ones were not begun, `claimed` ones are running.

    `position` is the cell's place in the order of the whole run of that VM; None if it is unknown.
    `sentinel_ms` are the drift sentinel's times on that boot, if it was run.
    """

    label: str
    arm: str
    block: int
    vm: str
    outcome: str
    reason: str = ""
    position: int | None = None
    sentinel_ms: tuple[float, ...] = ()


@dataclass(frozen=True)
class Column:
    """One column of a block: the label it is stored under, and the arm it runs."""

    label: str
    arm: str


@dataclass(frozen=True)
class PositiveControl:
    """An arm whose effect is known beforehand: it shows that the instrument can see one."""

    arm: str
    direction: Literal["slower", "faster"] = "slower"


@dataclass(frozen=True)
class AnalysisDesign:
    """What was declared before the run. `equivalence` is a ratio: 0.01 is one percent.

    `forms[0]` and `metric` are primary; columns stand in the order of the study file.
    """

    reference: str
    columns: tuple[Column, ...]
    sizes: tuple[int, ...]
    forms: tuple[str, ...]
    vms: tuple[str, ...]
    blocks: int
    order: Order = "randomised"
    metric: Metric = "elapsed_ms"
    equivalence: float = 0.01
    positive_control: PositiveControl | None = None

    @property
    def reference_labels(self) -> tuple[str, ...]:
        """The reference's columns: one, or two with the A/A check."""
        return tuple(column.label for column in self.columns if column.arm == self.reference)

    @property
    def compared(self) -> tuple[Column, ...]:
        """The columns that are compared with the reference."""
        return tuple(column for column in self.columns if column.arm != self.reference)


@dataclass(frozen=True)
class NotEvaluated:
    """Neither pass nor fail: why something could not be computed."""

    reason: str


def design_of(study: Study) -> AnalysisDesign:
    """The design that a study file declares."""
    return AnalysisDesign(
        reference=study.reference,
        columns=tuple(Column(label, arm) for arm, label in columns(study)),
        sizes=study.workload.sizes,
        forms=study.workload.forms,
        vms=study.vms,
        blocks=study.design.most_blocks,
        order=study.design.order,
        equivalence=study.design.equivalence,
        positive_control=PositiveControl(study.control_arm) if study.control_arm else None,
    )
