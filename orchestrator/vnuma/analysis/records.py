"""The analysis's inputs: series of iterations, cells and the design, as plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from vnuma.domain.study.order import columns
from vnuma.domain.study.study import Covariate, Order, Study
from vnuma.domain.workloads.metric import Better, Metric, Replicate

Key = Literal["elapsed_ms", "cpu_ms", "client_ms", "value"]
"""The field of a series with the figures."""


@dataclass(frozen=True)
class Measure:
    """A figure of every iteration. `name` as in "elapsed time", to be followed by its `unit`."""

    key: Key
    name: str
    unit: str
    better: Better = "lower"


ELAPSED = Measure("elapsed_ms", "elapsed time", "ms")
COMPANIONS = (Measure("cpu_ms", "CPU time", "ms"), Measure("client_ms", "time by the client's clock", "ms"))
"""Shown in addition to the declared measure if iterations have them; not used for the verdict."""


def measure_of(metric: Metric) -> Measure:
    """The measure that a workload declares."""
    key: Key = "elapsed_ms" if metric.source == "elapsed_ms" else "value"
    return Measure(key, metric.name, metric.unit, metric.better)


def worsening(log_ratio: float, better: Better) -> float:
    """How much worse, on the ln scale: above 0 is worse, whichever way is better."""
    return log_ratio if better == "lower" else -log_ratio


Times = tuple[float | None, ...]


class Series(NamedTuple):
    """The timed iterations of a cell's valid attempt at one `size`, in the workload's unit, and form.

    The other fields have an entry for each iteration, in order: times in ms, `value` and `figures` (by name)
    in the units that the workload declares. Empty or None: not measured. Columns, because a run has up to a
    million iterations.
    """

    label: str
    arm: str
    block: int
    vm: str
    size: int
    form: str
    elapsed_ms: tuple[float, ...] = ()
    cpu_ms: Times = ()
    client_ms: Times = ()
    value: Times = ()
    figures: tuple[Mapping[str, float] | None, ...] = ()

    def measured(self, key: Key) -> tuple[float, ...]:
        """The figures of one field, without iterations that lack it."""
        column: Any = getattr(self, key)
        return column if None not in column else tuple([figure for figure in column if figure is not None])


@dataclass(frozen=True)
class CellRecord:
    """A planned cell and how it ended: `outcome` is the cell's state in the store.

    Only `valid` cells are analysed; `pending` and `skipped` ones were not started, `claimed` ones are
    running. `tried_again`: it failed, and the run tries it again while attempts are left.

    `position` is the cell's place in the order of the VM's whole run; None if unknown. `sentinel_ms` are the
    drift sentinel's times on that boot, if it was run.
    """

    label: str
    arm: str
    block: int
    vm: str
    outcome: str
    reason: str = ""
    position: int | None = None
    sentinel_ms: tuple[float, ...] = ()
    tried_again: bool = False


@dataclass(frozen=True)
class Column:
    """One column of a block: its stored label, and its arm."""

    label: str
    arm: str


@dataclass(frozen=True)
class PositiveControl:
    """An arm with a known effect, which proves that the instrument can detect one."""

    arm: str
    direction: Literal["slower", "faster"] = "slower"


@dataclass(frozen=True)
class AnalysisDesign:
    """What was declared before the run. `equivalence` is a ratio: 0.01 is one percent.

    `forms[0]` in its own measure is primary; columns are in the order of the study file. `measures` are by
    form, elapsed time for any that is not named; `figures` are the other declared ones. `caution` is the
    workload's own caution about its result, and what to do. `size_word` says what a size counts, as in "rows
    a side"; `replicate` what is repeated. `fixed_work`: iterations of a size do the same, so that CPU time
    and the client's clock can be compared as well. `stop`: when it ends; `blocks` is then the largest number.
    """

    reference: str
    columns: tuple[Column, ...]
    sizes: tuple[int, ...]
    forms: tuple[str, ...]
    vms: tuple[str, ...]
    blocks: int
    order: Order = "randomised"
    measures: Mapping[str, Measure] = field(default_factory=dict)
    figures: tuple[Metric, ...] = ()
    size_word: str = "rows a side"
    fixed_work: bool = True
    replicate: Replicate = "boot"
    equivalence: float = 0.01
    positive_control: PositiveControl | None = None
    caution: tuple[str, str] | None = None
    covariate: Covariate = "none"
    stop: Literal["blocks", "decided"] = "blocks"
    printed: bool = False
    """Whether figures are read from a program's output, and so have its digits."""

    @property
    def place(self) -> Literal["none", "linear", "factor"]:
        """How the place in the block enters the comparison: squares are balanced for it."""
        if self.order in ("latin_square", "williams"):
            return "factor"
        return "linear" if self.covariate == "place" else "none"

    def measure(self, form: str) -> Measure:
        """The primary measure of that form."""
        return self.measures.get(form, ELAPSED)

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
    """Why something could not be computed: neither pass nor fail."""

    reason: str


def design_of(study: Study, planned: Collection[str] | None = None) -> AnalysisDesign:
    """The design that a study file declares; with `planned`, only the columns with planned cells.

    A machine with one NUMA node has none for an arm that needs two: that arm was left out, it is not missing.
    """
    workload = study.workload
    labels = {label for _, label in columns(study)} if planned is None else planned
    return AnalysisDesign(
        reference=study.reference,
        columns=tuple(Column(label, arm) for arm, label in columns(study) if label in labels),
        sizes=workload.sizes,
        forms=workload.forms,
        vms=study.vms,
        blocks=study.design.most_blocks,
        order=study.design.order,
        measures={form: measure_of(workload.metric(form)) for form in workload.forms},
        figures=workload.figures,
        size_word=workload.size_word,
        fixed_work=workload.fixed_work,
        replicate=study.replicate,
        equivalence=study.design.equivalence,
        positive_control=PositiveControl(study.control_arm) if study.control_arm else None,
        caution=workload.caution(),
        covariate=study.design.covariate,
        stop=study.design.stop,
        printed=workload.keeps_output,
    )
