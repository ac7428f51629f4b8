"""What the settings of all workloads share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from vnuma.domain.arm.arm import Arm
from vnuma.domain.workloads.metric import ELAPSED, Metric, sized
from vnuma.words.validation import Strict

Path = tuple[int | str, ...]


@dataclass(frozen=True)
class Problem:
    """One problem in a file: where (keys from the top), what, and the correct form."""

    path: Path
    what: str
    fix: str = ""


InstanceChange = Literal["process_affinity", "resource_pool", "tcp_ports"]
"""What a workload may change for the whole SQL Server instance; `engine/instance` has a class for each."""

INSTANCE_CHANGES: Mapping[InstanceChange, str] = {
    "process_affinity": "process affinity on each boot; read at the start, restored after the workload.",
    "resource_pool": (
        "a resource pool for data in memory, with Resource Governor on; both restored at the end."
    ),
    "tcp_ports": "TcpPort in its registry, its own port first; read at the start, restored with a restart.",
}
"""A plan's text for each."""

GuestPart = Literal["sql_server", "database", "shell"]
"""What a workload uses of its guest: SQL Server over TDS, a database that it makes there, a root shell over
Ansible's connection.
"""

Seconds = Annotated[float, Field(gt=0)]
Size = Annotated[int, Field(ge=1)]

ClockChoice = Literal["auto", "messages", "query_stats"]
COARSE_BELOW_MS = 100
"""Below this, rounding to whole milliseconds (SD 0.29 ms) adds 0.3% or more: as much as boots vary."""


@dataclass(frozen=True)
class WorkloadContext:
    """What a workload may know about its study.

    `smaller_table_rows` counts the dataset's smaller table, None if the source decides; `settings_of` gives
    the workload with the overrides of the arm with that label.
    """

    smaller_table_rows: int | None
    arms: tuple[Arm, ...]
    settings_of: Callable[[str], WorkloadSettings]


class WorkloadSettings(Strict):
    """Base of every workload's section in a study file.

    Each boot measures every size in every form; `forms[0]` is the primary one. Class variables describe the
    workload; fields are what a study may set.
    """

    size_word: ClassVar[str] = "rows"
    """What a size counts, in the plural: `rows a side`, `streams`, `connections`."""

    fixed_work: ClassVar[bool] = True
    """Whether each iteration of a size does the same work; otherwise its CPU time and duration are not
    compared.
    """

    sizes_are_loads: ClassVar[bool] = True
    """Whether a larger size means more concurrent work, so that a throughput's curve over sizes shows
    scaling.
    """

    factors: ClassVar[frozenset[str]] = frozenset()
    """Fields that an arm may override in its own `workload`."""

    node_factors: ClassVar[frozenset[str]] = frozenset()
    """Those that choose NUMA nodes: arms of one shape may differ only by them."""

    changes: ClassVar[frozenset[InstanceChange]] = frozenset()
    """The settings of the SQL Server instance that the workload changes."""

    needs_remote_memory: ClassVar[bool] = False
    """Whether it needs two vNUMA nodes on two physical nodes, so that virtually remote memory is remote."""

    proven: ClassVar[str] = "on the run's own machine"
    """What a valid pass over a machine that nothing shapes has proven."""

    keeps_output: ClassVar[bool] = False
    """Whether a sample's figure is read again from its kept output on analysis."""

    offers_control: ClassVar[bool] = False
    """Whether it supports the positive control (`design.control: remote`) by placing its data."""

    measured: ClassVar[Metric] = ELAPSED
    """The analysed metric, where it is the same in every form."""
    figures: ClassVar[tuple[Metric, ...]] = ()
    """A sample's other figures by name; source `figures`."""

    @property
    def needs(self) -> frozenset[GuestPart]:
        """The parts of a guest that it uses."""
        return frozenset({"sql_server", "database"})

    @property
    def runs_programs(self) -> bool:
        """Whether a root shell runs its programs, in the guest or on `client_host`."""
        return "shell" in self.needs

    @property
    def pool_share(self) -> int | None:
        """Percent of SQL Server's memory for its resource pool; None without one."""
        return None

    name: str
    sizes: tuple[int, ...]
    if TYPE_CHECKING:  # a field of most workloads; a property where forms have another name

        @property
        def forms(self) -> tuple[str, ...]:
            """What is measured in each boot; the first form is primary."""

    timeout_s: Seconds = Field(default=3600, description="Deadline of one execution, in seconds.")

    @property
    def maxdop_hint(self) -> int:
        """The MAXDOP hint of its statements; 0, the server's own, without one."""
        hint = getattr(self, "maxdop", 0)
        return hint if isinstance(hint, int) else 0

    @property
    def unordered_tops(self) -> tuple[str, ...]:
        """Names of statements that take TOP (n) rows without ordering, so that each run may read others.

        https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql
        """
        return ()

    @property
    def client_host(self) -> str | None:
        """The inventory's host from which SQL Server is called; None: the machine that vnuma runs on."""
        return None

    def metric(self, form: str) -> Metric:
        """The analysed metric of that form."""
        return self.measured

    def problems(self, around: WorkloadContext) -> Iterator[Problem]:
        """Contradictions between the study and this workload."""
        yield from ()

    def kernel_settings(self) -> Mapping[str, str]:
        """Kernel settings of a Linux machine during a pass, with their values; empty for none."""
        return {}

    def looks_at(self) -> tuple[str, ...]:
        """Files and programs that a plan looks for where the workload runs."""
        return ()

    def read_again(self, kept: Mapping[str, object]) -> float | None:
        """The figure of a sample's kept output (`Figures.execution`), for a workload that `keeps_output`."""
        return None

    def steps(self) -> Iterator[str]:
        """What it does to its target besides measuring, in sentences for a plan and a change board."""
        yield from ()

    def waits_for(self) -> str | None:
        """A database besides the study's own that must be online before a boot is measured."""
        return None

    def caution(self) -> tuple[str, str] | None:
        """A caution for readers of its verdicts, and what to do about it; or None."""
        return None

    def assumed_seconds(self, size: int, form: str) -> float:
        """An iteration's assumed duration on real hardware."""
        return 10.0

    def chosen(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Those fields with their values as text, sorted by name."""
        return tuple((name, str(getattr(self, name))) for name in sorted(names))

    def summary(self) -> str:
        """A plan's text: `call_volume with 1, 2 and 4 connections (noop, seek)`."""
        return f"{self.name} with {self.sizes_listed} {self.size_word} ({', '.join(self.forms)})"

    @property
    def sizes_listed(self) -> str:
        """`1, 2, 4,000`, without their unit."""
        return ", ".join(f"{size:,}" for size in self.sizes)

    def size_label(self, size: int) -> str:
        """One size for tables and progress: `8 streams`."""
        return sized(size, self.size_word)


class StatementSettings(WorkloadSettings):
    """What workloads share that time single statements (`workloads.query_bench`)."""

    plan: Literal["actual", "off"] = Field(
        default="actual",
        description=(
            "`actual` also runs each statement of the smallest size once on each boot, untimed, to record "
            "its plan."
        ),
    )
    clock: ClockChoice = Field(
        default="auto",
        description=(
            "`messages` times by SET STATISTICS TIME, in whole ms; `query_stats` by sys.dm_exec_query_stats, "
            "in microseconds. `auto` uses the latter, for the whole run, for each size and form whose first "
            "execution takes under 100 ms, and records that."
        ),
    )
