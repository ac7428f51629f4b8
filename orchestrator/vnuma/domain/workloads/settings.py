"""What the settings of every workload have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from vnuma.domain.arm.arm import Arm, Strict
from vnuma.domain.workloads.metric import ELAPSED, Metric
from vnuma.domain.workloads.problem import Problem
from vnuma.domain.workloads.replicate import Replicate
from vnuma.domain.workloads.sizes import sized

InstanceSetting = Literal["process_affinity", "resource_pool", "tcp_ports"]
"""A setting of the whole SQL Server instance that a workload changes: in the baseline, and restored."""

INSTANCE_CHANGES: Mapping[InstanceSetting, str] = {
    "process_affinity": "process affinity on each boot; read at the start, restored after the workload.",
    "resource_pool": (
        "a resource pool for data in memory, with Resource Governor on; both restored at the end."
    ),
    "tcp_ports": "TcpPort in its registry, its own port first; read at the start, restored with a restart.",
}
"""What a plan says of each."""

Seconds = Annotated[float, Field(gt=0)]
Size = Annotated[int, Field(ge=1)]

ClockChoice = Literal["auto", "messages", "query_stats"]

PlanChoice = Literal["actual", "off"]

COARSE_BELOW_MS = 100
"""Rounding to whole milliseconds (SD 0.29 ms) adds 0.3% and more below this: as much as boots vary."""

CLOCK_MEANING = (
    "`messages` times by SET STATISTICS TIME, in whole ms; `query_stats` by sys.dm_exec_query_stats, "
    "in microseconds. `auto` uses the latter, for the whole run, for each size and form whose first "
    "execution takes under 100 ms, and records that."
)

PLAN_MEANING = (
    "`actual` also runs each statement of the smallest size once on each boot, untimed, to record its plan."
)


@dataclass(frozen=True)
class WorkloadContext:
    """What a workload may know of the study that it stands in.

    `smaller_table_rows` counts the dataset's smaller table, None where the source decides it; `settings_of`
    gives the workload as the arm with that label runs it.
    """

    smaller_table_rows: int | None
    arms: tuple[Arm, ...]
    settings_of: Callable[[str], WorkloadSettings]


class WorkloadSettings(Strict):
    """Base of every workload's section in a study file.

    Each boot measures every size in every form, `forms[0]` being the primary one. What the class says
    about itself stands in the class variables; what a study may set, in the fields.
    """

    size_word: ClassVar[str] = "rows"
    """What a size counts, in the plural: `rows a side`, `streams`, `connections`."""

    fixed_work: ClassVar[bool] = True
    """Whether each iteration of a size does as much work: else its CPU time and duration compare nothing."""

    sizes_are_loads: ClassVar[bool] = True
    """Whether a larger size asks for more at once, so that a throughput's curve over sizes means scaling."""

    guest: ClassVar[Literal["sql_server", "linux"]] = "sql_server"
    """What has to run in the guest."""

    factors: ClassVar[frozenset[str]] = frozenset()
    """Fields that an arm may set differently, under its own `workload`."""

    node_factors: ClassVar[frozenset[str]] = frozenset()
    """Those of them that choose NUMA nodes: arms may differ by them alone, on VMs of one shape."""

    replicate: ClassVar[Replicate] = "boot"
    """What is repeated: the one place that decides what reports call it."""

    changes: ClassVar[frozenset[InstanceSetting]] = frozenset()
    """What of the SQL Server instance the workload changes."""

    needs_remote_memory: ClassVar[bool] = False
    """Whether it needs two vNUMA nodes on two physical nodes: what is virtually remote is remote."""

    offers_control: ClassVar[bool] = False
    """Whether the positive control (`design.control: remote`) can place its data."""

    figures: ClassVar[tuple[Metric, ...]] = ()
    """What a sample tells besides its metric, under these names; source `figures`."""

    @property
    def pool_share(self) -> int | None:
        """Percent of SQL Server's memory in the resource pool that it makes; None: it makes none."""
        return None

    name: str
    sizes: tuple[int, ...]
    if TYPE_CHECKING:  # a field of most workloads, a property of those that name their forms otherwise

        @property
        def forms(self) -> tuple[str, ...]:
            """What is measured side by side; the first form decides."""

    timeout_s: Seconds = Field(default=3600, description="Deadline of one execution, in seconds.")

    @property
    def caller(self) -> str | None:
        """The inventory's host that SQL Server is called from; None: the machine that vnuma runs on."""
        return None

    def metric(self, form: str) -> Metric:
        """What is analysed of that form."""
        del form
        return ELAPSED

    def problems(self, around: WorkloadContext) -> Iterator[Problem]:
        """What of the study does not go with this workload, although each field alone is right."""
        del around
        yield from ()

    def kernel_settings(self) -> Mapping[str, str]:
        """Kernel settings of a Linux machine that a pass holds, with their values; empty for none."""
        return {}

    def waits_for(self) -> str | None:
        """A database that has to be online before any boot is measured, besides the study's own."""
        return None

    def caution(self) -> tuple[str, str] | None:
        """What a reader of its verdicts has to know, and what to do about it; None for nothing."""
        return None

    def assumed_seconds(self, size: int, form: str) -> float:
        """How long one iteration likely takes on real hardware, before anything was measured."""
        del size, form
        return 10.0

    def chosen(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Those fields with their values as text, in the order of their names."""
        return tuple((name, str(getattr(self, name))) for name in sorted(names))

    def summary(self) -> str:
        """What is run, for a plan: `call_volume with 1, 2 and 4 connections (noop, seek)`."""
        sizes = ", ".join(f"{size:,}" for size in self.sizes)
        return f"{self.name} with {sizes} {self.size_word} ({', '.join(self.forms)})"

    def size_label(self, size: int) -> str:
        """One size for tables and progress: `8 streams`."""
        return sized(size, self.size_word)


def maxdop_of(workload: WorkloadSettings) -> int:
    """The MAXDOP hint of a workload's statements; 0, the server's own, for one that has none."""
    hint = getattr(workload, "maxdop", 0)
    return hint if isinstance(hint, int) else 0
