"""Where runs and cells stand, and how attempts and restores ended: the words that the store holds."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """Where a run is. `conflict`: somebody else changed a VM, which was therefore not restored."""

    PLANNED = "planned"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    CONFLICT = "conflict"

    @property
    def ended(self) -> bool:
        """Nothing is being done for this run any more (`conflict` waits for a person)."""
        return self in (RunState.STOPPED, RunState.FINISHED, RunState.FAILED)


class StopRequest(StrEnum):
    """Stop after the cell that is being measured, or after the iteration."""

    CELL = "cell"
    NOW = "now"


class CellState(StrEnum):
    """`failed` is the state after an attempt that gave no result: it may be tried again."""

    PENDING = "pending"
    CLAIMED = "claimed"
    VALID = "valid"
    FAILED = "failed"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """How an attempt ended. Only a valid one is analysed."""

    VALID = "valid"
    INVALID = "invalid"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class RestoreOutcome(StrEnum):
    """What putting a VM back came to. `unreachable`: vCenter did not answer, so the VM was not looked at."""

    RESTORED = "restored"
    UNCHANGED = "unchanged"
    THEIRS = "theirs"
    CONFLICT = "conflict"
    UNREACHABLE = "unreachable"
    FAILED = "failed"

    @property
    def settled(self) -> bool:
        """The VM needs no more restoring: at its baseline, or left by a person's decision."""
        return self in (RestoreOutcome.RESTORED, RestoreOutcome.UNCHANGED, RestoreOutcome.THEIRS)
