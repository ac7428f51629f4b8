"""States of runs and cells, and outcomes of attempts and restores, as stored."""

from __future__ import annotations

from enum import StrEnum


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
