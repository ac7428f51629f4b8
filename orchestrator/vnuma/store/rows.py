"""What the store contains, as frozen values. Times are aware and in UTC, durations in milliseconds."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from vnuma.domain.study.order import PlannedCell
from vnuma.domain.vm.facts import HostKey, host_key
from vnuma.domain.workloads.metric import Figures


class RunState(StrEnum):
    """The state of a run. `conflict`: somebody else changed a VM, which was therefore not restored."""

    PLANNED = "planned"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    CONFLICT = "conflict"

    @property
    def ended(self) -> bool:
        """Whether nothing is being done for this run any more (`conflict` waits for a person)."""
        return self in (RunState.STOPPED, RunState.FINISHED, RunState.FAILED)


class StopRequest(StrEnum):
    """Stop after the cell that is being measured, or after the iteration."""

    CELL = "cell"
    NOW = "now"


class CellState(StrEnum):
    """`failed` follows an attempt without a result; the cell may be tried again."""

    PENDING = "pending"
    CLAIMED = "claimed"
    VALID = "valid"
    FAILED = "failed"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """How an attempt ended. Only valid ones are analysed."""

    VALID = "valid"
    INVALID = "invalid"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class RestoreOutcome(StrEnum):
    """The outcome of a restore. `unreachable`: vCenter did not answer, so the VM was not examined."""

    RESTORED = "restored"
    UNCHANGED = "unchanged"
    THEIRS = "theirs"
    CONFLICT = "conflict"
    UNREACHABLE = "unreachable"
    FAILED = "failed"

    @property
    def settled(self) -> bool:
        """Whether the VM needs no more restoring: at its baseline, or left as it is by a person's
        decision.
        """
        return self in (RestoreOutcome.RESTORED, RestoreOutcome.UNCHANGED, RestoreOutcome.THEIRS)


@dataclass(frozen=True)
class Study:
    """One version of a study file."""

    id: int
    name: str
    yaml: str
    sha256: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text that is here now: whoever alters a row may leave `sha256` as it was."""
        return hashlib.sha256(self.yaml.encode()).hexdigest()


@dataclass(frozen=True)
class Run:
    """One execution of a study; `name` is the study's name and a running number."""

    id: int
    study_id: int
    name: str
    study_name: str
    number: int
    seed: int
    state: RunState
    stop_requested: StopRequest | None
    simulated: str | None
    """The lab's scenario, or None for a run on real machines."""
    product_version: str
    driver: object
    inventory: str | None
    created_at: datetime
    finished_at: datetime | None
    supervisor_pid: int | None
    supervisor_host: str | None
    heartbeat_at: datetime | None
    ticket: str | None = None
    """The change ticket under which its VMs may be changed."""
    site: str | None = None
    """The site whose part of the run this is; `supervisor` is then that part's own."""


@dataclass(frozen=True)
class Site:
    """A site's part of a run. `end`: how the work there ended; None before that."""

    run_id: int
    name: str
    supervisor_pid: int | None
    supervisor_host: str | None
    heartbeat_at: datetime | None
    end: object


@dataclass(frozen=True)
class Vm:
    """A VM in a run. `baseline` is the configuration to restore; None until it is committed."""

    id: int
    run_id: int
    vm_key: str
    name: str
    path: str
    esxi_host: str
    baseline: object
    baseline_at: datetime | None
    restored_at: datetime | None
    restore_outcome: RestoreOutcome | None
    restore_detail: object
    site: str | None = None
    """Its site; None for the controller's own."""

    @property
    def host_key(self) -> HostKey:
        """The host that it loads: another site may have one of the same name."""
        return host_key(self.vm_key, self.esxi_host)

    @property
    def at_baseline(self) -> bool:
        """False from when the baseline is saved, or the VM claimed, until a restore is settled."""
        return self.baseline_at is None or self.restored_at is not None


@dataclass(frozen=True)
class Lease:
    """A held lease: only writes with this `token` count."""

    vm_key: str
    run_id: int
    token: int
    holder: str
    taken_at: datetime


@dataclass(frozen=True, kw_only=True)
class Cell(PlannedCell):
    """A planned cell of a VM. `reason` says why it was skipped."""

    id: int
    run_id: int
    vm_id: int
    state: CellState
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Claim(PlannedCell):
    """A claimed cell and the attempt that was opened for it, whose `id` it has, as steps pass it on."""

    id: int
    cell_id: int
    number: int
    token: int


@dataclass(frozen=True)
class Busy:
    """No cell can be claimed now: `vm_name` of `run_name` has been measured since `since`."""

    reason: str
    run_name: str
    vm_name: str
    since: datetime


@dataclass(frozen=True)
class AttemptLine:
    """An attempt without its documents, for order, limits and progress."""

    id: int
    cell_id: int
    vm_id: int
    label: str
    block: int
    number: int
    step: str | None
    step_at: datetime | None
    started_at: datetime
    ended_at: datetime | None
    outcome: Outcome | None
    reason: str | None
    detail: str | None = None
    token: int | None = None
    """The fencing token with which it began; attempts under an earlier lease have another one."""

    @property
    def seconds(self) -> float:
        """How long it took; 0 while it is open."""
        return (self.ended_at - self.started_at).total_seconds() if self.ended_at else 0.0


@dataclass(frozen=True, kw_only=True)
class Attempt(AttemptLine):
    """An attempt at a cell with its documents."""

    arm: str
    position: int
    intended: object
    predicted: object
    effective: object
    change: object
    timings: object


@dataclass(frozen=True)
class Sample(Figures):
    """One iteration: measured, with `elapsed_ms`, or failed, with a `reason`; never both."""

    workload: str
    size: int
    form: str
    iteration: int
    warmup: bool
    at: datetime
    elapsed_ms: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Refuse invalid values: no time without a reason, a time with one, NaN, negative."""
        if (self.elapsed_ms is None) != (self.reason is not None):
            raise ValueError("a sample has either elapsed_ms or a reason")
        times = (self.cpu_ms, self.elapsed_ms, self.parse_cpu_ms, self.parse_elapsed_ms, self.client_ms)
        for value in times:
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"{value} is not a valid time in milliseconds")
        for figure in (self.value, *(self.figures or {}).values()):
            if figure is not None and not math.isfinite(figure):
                raise ValueError(f"{figure} is not a valid figure")
        if self.value is not None and self.reason is not None:
            raise ValueError("a sample has either a value or a reason")

    @property
    def outcome(self) -> str:
        """`measured` or `failed`."""
        return "failed" if self.elapsed_ms is None else "measured"


@dataclass(frozen=True)
class Fact:
    """A fact about a run, one of its VMs or one attempt; None means "not known"."""

    id: int
    run_id: int
    vm_id: int | None
    attempt_id: int | None
    scope: str
    key: str
    value: object
    at: datetime
