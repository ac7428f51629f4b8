"""A study: one experiment in one YAML file, validated as a whole before anything is touched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from vnuma.domain.arm.arm import Arm, ArmSettings
from vnuma.domain.workloads.kinds import AnyWorkload, as_workload
from vnuma.domain.workloads.metric import Replicate
from vnuma.domain.workloads.settings import Seconds, WorkloadContext, WorkloadSettings
from vnuma.words.validation import Percent, Strict

CONTROL_SUFFIX = " (remote)"

Covariate = Literal["none", "place"]
Order = Literal["randomised", "latin_square", "williams", "fixed"]


class Design(Strict):
    """How many boots, in which order, and what is run in each."""

    blocks: int = Field(default=8, ge=1, le=200, description="Passes over all arms; a verdict needs 6.")
    stop: Literal["blocks", "decided"] = Field(
        default="blocks",
        description=(
            "`decided` instead of `blocks`: an arm leaves after the block in which its verdict is certain "
            "(looks from block 4, equivalent from block 6), and the study ends when every arm has left. "
            "Intervals hold at all looks together, so a run that was stopped keeps its verdicts. For "
            "`randomised` order."
        ),
    )
    seed: int = Field(default=1, ge=0, description="Seed of the order; the same seed gives the same order.")
    order: Order = Field(
        default="randomised",
        description=(
            "`randomised` shuffles each block. `latin_square` puts every arm equally often in every "
            "place of a block. `williams` also makes every arm follow every other equally often. "
            "`fixed` runs the arms as written: drift then looks like an effect, so there is no verdict."
        ),
    )
    covariate: Covariate = Field(
        default="none",
        description=(
            "`place` removes a steady drift within blocks from the comparison: the place in the block "
            "is a linear covariate. Declared beforehand, never chosen after looking. For `randomised` "
            "order (squares account for the place by themselves)."
        ),
    )
    a_a: bool = Field(
        default=True,
        description="Run the reference arm twice in each block, to measure the instrument's own error.",
    )
    neighbours: Literal["take_turns", "together"] = Field(
        default="take_turns",
        description=(
            "The study's VMs on one ESXi host: `take_turns` measures one at a time; `together` "
            "measures them at once, so that they load each other. VMs on different hosts always run in "
            "parallel."
        ),
    )
    control: Literal["none", "remote"] = Field(
        default="none",
        description=(
            "`remote` adds a positive control to each block: the reference arm, its tables made on one "
            "vNUMA node and read from another, by SQL Server's process affinity. It needs two vNUMA "
            "nodes on two physical nodes. If the control is not detected, nothing is called equivalent."
        ),
    )
    sentinel: bool = Field(
        default=True,
        description="Also run a short reference query on each boot: an alarm if the host itself drifts.",
    )
    warmups: int = Field(default=1, ge=0, le=20, description="Untimed first iterations; stored separately.")
    iterations: int = Field(default=3, ge=1, le=50, description="Timed iterations per boot, size and form.")
    equivalence: Percent = Field(
        default=0.01,
        json_schema_extra={"default": "1%"},  # as in a file
        description=(
            "Arms within this distance of the reference, on either side, are equivalent. Declared beforehand."
        ),
    )
    precision: Percent | None = Field(
        default=None,
        description=(
            "Instead of `blocks`: stop after the block in which the half-width of every 95% interval "
            "is at most this (checked from block 6, with at most 3 columns from block 8). Never based "
            "on significance."
        ),
    )
    max_blocks: int = Field(
        default=24,
        ge=1,
        le=200,
        description="With `stop: decided` or `precision`: the largest number of blocks.",
    )
    max_hours: float | None = Field(
        default=None,
        gt=0,
        description="No block starts that would probably end after this many hours of work on a VM.",
    )

    @property
    def may_end_early(self) -> bool:
        """Whether a rule about its intervals ends it, so that fewer blocks than planned will probably run."""
        return self.stop == "decided" or self.precision is not None

    @property
    def most_blocks(self) -> int:
        """Blocks that are planned."""
        return self.max_blocks if self.may_end_early else self.blocks


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WINDOW = re.compile(r"(?P<days>[A-Za-z,\- ]+?)\s+(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d)")
_Moment = TypeVar("_Moment", int, datetime)
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_AHEAD_DAYS = 8
"""A weekly window recurs within this many days."""


class AllowedHours(Strict):
    """When the study may change its VMs."""

    time_zone: str = Field(
        description="Time zone of the windows: an IANA name, such as `Europe/Berlin` or `UTC`."
    )
    windows: tuple[str, ...] = Field(
        min_length=1,
        description=(
            "Such as `Mon-Fri 20:00-06:00` or `Sat,Sun 00:00-24:00`: the days on which a window opens. "
            "If it ends before it starts, it ends on the next day."
        ),
    )
    restore_s: float = Field(
        default=900, gt=0, description="Seconds kept free at a window's end for restoring the VMs."
    )

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"'{value}' is not a time zone: use a name such as Europe/Berlin") from None
        return value

    @field_validator("windows")
    @classmethod
    def _are_windows(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            _parse(text)
        return value

    @property
    def words(self) -> str:
        """As text: `Mon-Fri 20:00-06:00 (Europe/Berlin)`."""
        return f"{'; '.join(self.windows)} ({self.time_zone})"

    @property
    def longest_s(self) -> float | None:
        """Length of the longest window by the clock, adjacent ones merged; None: it never closes."""
        longest = max(end - start for start, end in _merged(self._minutes_of_fortnight()))
        return None if longest >= _WEEK_MINUTES else longest * 60.0

    def _minutes_of_fortnight(self) -> Iterator[tuple[int, int]]:
        """Every window of two weeks, so that one that continues into the next week is complete."""
        for text in self.windows:
            days, start, length = _parse(text)
            for day in days:
                for begin in (day * _DAY_MINUTES + start, day * _DAY_MINUTES + start + _WEEK_MINUTES):
                    yield begin, begin + length

    def closes(self, now: datetime) -> datetime | None:
        """When the window that is open at `now` ends, in the study's zone; None if none is open.

        Adjacent windows count as one. The search ends after a week, so for hours that never close the result
        is over a week ahead and moves on.
        """
        return next((end for start, end in self._merged(now) if start <= now < end), None)

    def opens(self, now: datetime) -> datetime:
        """When the next window after `now` opens, in the study's zone; for an open one, when it did."""
        return next(start for start, end in self._merged(now) if end > now)

    def _merged(self, now: datetime) -> list[tuple[datetime, datetime]]:
        """The windows from yesterday on, in order, adjacent ones merged."""
        zone = ZoneInfo(self.time_zone)
        spans = _merged(self._spans(now.astimezone(zone).date() - timedelta(days=1)))
        return [(start.astimezone(zone), end.astimezone(zone)) for start, end in spans]

    def _spans(self, first: date) -> Iterator[tuple[datetime, datetime]]:
        """In UTC, so that a night with a clock change has its true length."""
        zone = ZoneInfo(self.time_zone)
        for offset in range(_AHEAD_DAYS + 2):
            day = first + timedelta(days=offset)
            for text in self.windows:
                days, start, length = _parse(text)
                if day.weekday() in days:
                    yield _at(day, start, zone), _at(day, start + length, zone)


def _merged(spans: Iterable[tuple[_Moment, _Moment]]) -> list[tuple[_Moment, _Moment]]:
    """Start and end of each in order, adjacent ones merged."""
    merged: list[tuple[_Moment, _Moment]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _at(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    """A wall clock time on that day, or on the next one, in UTC."""
    later, minute = divmod(minutes, _DAY_MINUTES)
    clock = datetime.combine(day + timedelta(days=later), time(minute // 60, minute % 60), zone)
    return clock.astimezone(UTC)


def _parse(text: str) -> tuple[frozenset[int], int, int]:
    """Days (0 is Monday), start and length in minutes. Raises ValueError with the correct form."""
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a window: write it as Mon-Fri 20:00-06:00")
    start, end = _minutes(match["start"], 23), _minutes(match["end"], 24)
    return _days(match["days"]), start, (end - start) % _DAY_MINUTES or _DAY_MINUTES


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        start = _day(first)
        end = _day(last) if dash else start
        found |= {(start + step) % 7 for step in range((end - start) % 7 + 1)}
    return frozenset(found)


def _day(text: str) -> int:
    name = text.strip().capitalize()
    if name not in DAYS:
        raise ValueError(f"'{text.strip()}' is not a day: use {', '.join(DAYS)}")
    return DAYS.index(name)


def _minutes(text: str, latest_hour: int) -> int:
    hour, minute = (int(part) for part in text.split(":"))
    if hour > latest_hour or minute > 59 or hour * 60 + minute > _DAY_MINUTES:
        raise ValueError(f"'{text}' is not a time of day: use 00:00 to 24:00")
    return hour * 60 + minute


Acceptable = Literal["P13", "P14", "P21", "P22", "P23", "P24", "P26"]
"""Blocking findings of preflight that a study may accept."""


class Dataset(Strict):
    """The two AdventureWorks tables, in a database of our own."""

    database: str = Field(
        default="vnuma_study",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$",
        description="Created by vnuma if it does not exist; a database that vnuma did not create is refused.",
    )
    source: str = Field(
        default="generated",
        description="`generated`, or the name of an AdventureWorks database on the same server to copy from.",
    )
    transaction_history_rows: int = Field(
        default=113_443, ge=1, le=5_000_000, description="Rows to generate."
    )
    sales_order_detail_rows: int = Field(default=121_317, ge=1, le=5_000_000, description="Rows to generate.")
    drop_after: bool = Field(default=True, description="Drop the database when the run ends.")

    @property
    def smaller_table_rows(self) -> int | None:
        """Rows of the smaller table, the limit for sizes; None for a copy, whose source decides."""
        if self.source != "generated":
            return None
        return min(self.transaction_history_rows, self.sales_order_detail_rows)


class PowerRules(Strict):
    """Deadlines of a power-cycle, in seconds, and what happens when the guest does not shut down."""

    shutdown_timeout_s: Seconds = Field(
        default=600, description="Time for the guest's shutdown through Tools."
    )
    guest_is_asked_to: Literal["shut_down", "reboot"] = Field(
        default="shut_down",
        description=(
            "`reboot` (ESXi 8, needs VirtualMachine.Config.Settings) marks the VM so that its next "
            "reboot ends powered off, and asks the guest to reboot: for guests that must not be shut "
            "down."
        ),
    )
    on_shutdown_timeout: Literal["fail", "power_off"] = Field(
        default="fail",
        description="`fail` leaves the VM running and ends its cells; `power_off` cuts its power.",
    )
    late_shutdown_s: Seconds = Field(
        default=3600,
        description=(
            "How much longer a guest that has begun to shut down is watched until it is off, for instance "
            "while Windows installs updates. The VM is then powered on as always."
        ),
    )
    tools_timeout_s: Seconds = Field(default=600, description="Time from power-on until VMware Tools run.")
    sql_timeout_s: Seconds = Field(
        default=600, description="Time from running Tools until SQL Server is ready."
    )
    task_timeout_s: Seconds = Field(default=300, description="Time for one vSphere task.")
    vcenter_retry_s: Seconds = Field(
        default=900,
        description=("How long to retry each step while vCenter restarts, ends sessions or is busy."),
    )

    @property
    def longest_hold_s(self) -> float:
        """How long one step may hold its VM: a shutdown that is late, a boot, and the tasks between them."""
        return self.shutdown_timeout_s + self.late_shutdown_s + self.tools_timeout_s + 2 * self.task_timeout_s


class Quiet(Strict):
    """When a freshly booted guest counts as quiet."""

    cpu_percent: float = Field(default=10, gt=0, le=100, description="CPU use below this, in percent.")
    for_s: float = Field(
        default=30,
        ge=0,
        description=(
            "How many seconds in a row; 0 does not wait. On the lab, whose guest runs nothing else, at "
            "most half a second."
        ),
    )
    timeout_s: Seconds = Field(
        default=600, description="After this time the boot is measured anyway, and the report says so."
    )


class Evidence(Strict):
    """What is gathered of each boot besides what SQL Server shows."""

    vmware_log: Literal["auto", "off"] = Field(
        default="auto",
        description=(
            "`auto` fetches the boot's vmware.log from the ESXi host that runs the VM (port 443; privileges "
            "Datastore.Browse and Datastore.FileManagement) and compares it; if it is not available, it is "
            "not evaluated. `off` does not fetch it."
        ),
    )


class Limits(Strict):
    """When to give up."""

    attempts_per_cell: int = Field(
        default=3,
        ge=1,
        le=10,
        description=(
            "Power-cycles for one cell, including failures. A failure that every cell would repeat, "
            "such as a missing privilege, ends the VM's cells at once and is not counted here."
        ),
    )
    max_failed_cells: int = Field(
        default=3, ge=0, description="If more cells than this fail, that VM's remaining cells are not run."
    )


Above0 = Annotated[float, Field(gt=0)]


class Published(Strict):
    """Figures published by others for the same arms, compared with ours: at least one kind."""

    title: str = Field(description="Short citation.")
    source: str = Field(default="", description="Where it was published.")
    elapsed_ms: dict[int, dict[str, float]] = Field(
        default={}, description="Size -> arm -> elapsed time in ms, of the study's first form."
    )
    figures: dict[str, dict[int, dict[str, Above0]]] = Field(
        default={}, description="Form -> size -> arm -> figure, in the unit of the form."
    )
    ratios: dict[str, dict[str, Above0]] = Field(
        default={},
        description=(
            "Form -> arm -> figure of the arm / figure of the reference arm, if only the ratio was "
            "published; compared with ours over all sizes."
        ),
    )
    size_ratios: dict[str, dict[int, dict[str, Above0]]] = Field(
        default={},
        description=(
            "Form -> size -> arm -> the same ratio, if published for a size; compared with ours at that size."
        ),
    )
    lower_bounds: dict[str, dict[int, list[str]]] = Field(
        default={},
        description=(
            "Form -> size -> arms whose published figure is a lower bound, as in `more than 34,000`: "
            "ours contradicts it only if it is lower."
        ),
    )
    figure_ratios: dict[str, dict[str, dict[str, Above0]]] = Field(
        default={},
        description=(
            "Form -> name of another figure, such as `spins per insert` -> arm -> figure of the arm / "
            "figure of the reference arm; compared with ours."
        ),
    )

    @model_validator(mode="after")
    def _publishes_something(self) -> Published:
        if not (self.elapsed_ms or self.figures or self.ratios or self.size_ratios or self.figure_ratios):
            raise ValueError(
                "published has no figures: give elapsed_ms, figures, ratios, size_ratios or figure_ratios"
            )
        return self

    @model_validator(mode="after")
    def _bounds_are_published(self) -> Published:
        for form, sizes in self.lower_bounds.items():
            for size, arms in sizes.items():
                known = {**self.elapsed_ms.get(size, {}), **self.figures.get(form, {}).get(size, {})}
                if unknown := [arm for arm in arms if arm not in known]:
                    raise ValueError(
                        f"lower_bounds names {unknown[0]} at {form}, {size}, but no figure is published there"
                    )
        return self


class Study(Strict):
    """One experiment."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", description="Runs are called NAME.1, NAME.2 and so on."
    )
    title: str = Field(default="", description="One line for reports.")
    vms: tuple[str, ...] = Field(min_length=1, description="Inventory names of the VMs.")
    vcpus: int | None = Field(
        default=None,
        ge=1,
        le=768,
        description=(
            "vCPUs of the VM, unless an arm has its own. Omit it only where nothing is shaped (every arm "
            "`topology: keep`)."
        ),
    )
    reference: str = Field(description="The arm that the others are compared with.")
    arms: tuple[Arm, ...] = Field(min_length=1, description="The configurations under test.")
    all_arms: ArmSettings = Field(
        default=ArmSettings(), description="Settings of every arm that does not set its own."
    )
    design: Design = Field(default=Design(), description="Blocks, order, iterations.")
    workload: AnyWorkload = Field(default_factory=lambda: as_workload({}), description="What is measured.")
    dataset: Dataset = Field(default=Dataset(), description="The data it is timed on.")
    power: PowerRules = Field(default=PowerRules(), description="Deadlines of a power-cycle.")
    quiet: Quiet = Field(default=Quiet(), description="When a booted guest counts as quiet.")
    evidence: Evidence = Field(default=Evidence(), description="What else is collected from each boot.")
    limits: Limits = Field(default=Limits(), description="When to give up.")
    allowed_hours: AllowedHours | None = Field(
        default=None,
        description=(
            "When VMs may be changed; any time if omitted. A cell starts only if it can end, and the "
            "VM be restored, before the window closes. The run then stops and can be resumed."
        ),
    )
    accept: tuple[Acceptable, ...] = Field(
        default=(),
        description=(
            "Preflight findings that do not stop this study: `P13` shared and `P14` raw disks, `P21` "
            "availability groups, `P22` failover clusters, `P23` replication, `P24` log shipping, `P26` "
            "sessions of others. They become warnings in the report."
        ),
    )
    published: Published | None = Field(default=None, description="Other people's figures for comparison.")

    @model_validator(mode="before")
    @classmethod
    def _accept_short_forms(cls, data: object) -> object:
        """`vm: NAME` for one VM, and an arm written as its topology alone."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if "vm" in data and "vms" not in data:
            data["vms"] = [data.pop("vm")]
        if isinstance(data.get("arms"), list | tuple):
            data["arms"] = [arm if isinstance(arm, dict | Arm) else {"topology": arm} for arm in data["arms"]]
        return data

    @property
    def control_arm(self) -> str | None:
        """The positive control's name in tables; None without one."""
        return f"{self.reference}{CONTROL_SUFFIX}" if self.design.control == "remote" else None

    def arm(self, label: str) -> Arm:
        """The arm of that name, with `all_arms` filled in where it has no value of its own.

        The positive control has the reference arm's settings: it differs only inside the guest.
        """
        label = self.reference if label == self.control_arm else label
        arm = next(arm for arm in self.arms if arm.label == label)
        own = {"vcpus": arm.vcpu_count or self.vcpus}
        common = own | {
            name: getattr(self.all_arms, name)
            for name in ArmSettings.model_fields
            if name in self.all_arms.model_fields_set and name not in arm.model_fields_set
        }
        return arm.model_copy(update=common)

    def workload_of(self, label: str) -> WorkloadSettings:
        """The workload with that arm's overrides, including its MAXDOP."""
        arm = self.arm(label)
        own = dict(arm.workload) | ({} if arm.maxdop == "keep" else {"maxdop": arm.maxdop})
        if not own:
            return self.workload
        return type(self.workload).model_validate({**self.workload.model_dump(), **own})

    @property
    def workload_context(self) -> WorkloadContext:
        """What the workload may know about this study."""
        rows = self.dataset.smaller_table_rows
        return WorkloadContext(rows, self.arms, self.workload_of)

    @property
    def maxdops(self) -> tuple[int, ...]:
        """The distinct MAXDOP hints, in the order of the arms; 0 is the server's own setting."""
        return tuple(dict.fromkeys(self.workload_of(label).maxdop_hint for label in self.labels))

    @property
    def shapes(self) -> bool:
        """Whether any arm needs a hypervisor that shapes and boots the target."""
        return any(arm.topology != "keep" for arm in self.arms)

    @property
    def replicate(self) -> Replicate:
        """What is repeated: a boot of the shaped VM, or a pass over a target that is measured as it is."""
        return "boot" if self.shapes else "pass"

    @property
    def sets_soft_numa(self) -> bool:
        """Whether any arm changes SQL Server's automatic soft-NUMA."""
        return any(self.arm(label).soft_numa != "keep" for label in self.labels)

    @property
    def compares_shapes(self) -> bool:
        """Whether the arms differ in more than the workload's factors: in shape or instance settings."""
        own = [arm.model_dump(exclude={"name", "workload"}) for arm in self.arms]
        return any(shape != own[0] for shape in own)

    @property
    def labels(self) -> tuple[str, ...]:
        """The arms' names in the order of the file."""
        return tuple(arm.label for arm in self.arms)
