"""An attempt at a cell: its steps, and how each way of ending is recorded.

A step that fails stores outcome and reason before its error travels on, so that a play which goes
on after an error finds the cell already settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vnuma.domain.arm.arm import Arm
from vnuma.engine.lease.context import VmContext
from vnuma.engine.lease.window import refuse_if_over
from vnuma.errors import AttemptFailed, InputError, Interrupted, LeaseLost, VnumaError, reason_word
from vnuma.store import attempts
from vnuma.store.rows import Claim
from vnuma.store.states import Outcome
from vnuma.store.types import utc_now


@dataclass(frozen=True)
class Attempt:
    """One try at a cell, as the steps of a play hand it on."""

    id: int
    cell_id: int
    number: int
    token: int
    arm: str
    label: str
    block: int

    @classmethod
    def of(cls, claim: Claim) -> Attempt:
        """The attempt that a claim opened."""
        return cls(
            claim.attempt_id, claim.cell_id, claim.number, claim.token, claim.arm, claim.label, claim.block
        )

    def settings(self, context: VmContext) -> Arm:
        """The arm that this attempt is to bring about."""
        return context.study.arm(self.arm)


def attempt_of(document: Mapping[str, Any]) -> Attempt:
    """The attempt that a step of a play was handed. Raises InputError."""
    try:
        return Attempt(**document)
    except TypeError:
        raise InputError(
            "option attempt is not a valid attempt.",
            fix="Pass the value that vnuma.vnuma.cell_claim returned.",
        ) from None


@contextmanager
def step(context: VmContext, attempt: Attempt, name: str) -> Iterator[None]:
    """Run one step of an attempt: record that it began, and how it failed if it does.

    None begins when the allowed hours leave only the time to put the VM back.

    Raises whatever the step raised. A lost lease is not recorded: the VM belongs to another by now.
    """
    with context.store.write() as connection:
        attempts.set_step(connection, attempt.id, context.token, name)
    try:
        refuse_if_over(context.study, context.run.name, utc_now())
        yield
    except LeaseLost:
        raise
    except AttemptFailed as error:
        finish(context, attempt, Outcome(error.outcome), error.reason, str(error))
        raise
    except Interrupted as error:
        finish(context, attempt, Outcome.INTERRUPTED, "stop_requested", str(error))
        raise
    except VnumaError as error:
        finish(context, attempt, Outcome.FAILED, reason_word(type(error)), str(error))
        raise
    except Exception as error:
        # A bug, or a fault of vSphere that nobody expected: left open it would pass for an interruption.
        finish(context, attempt, Outcome.FAILED, reason_word(type(error)), f"{type(error).__name__}: {error}")
        raise


@contextmanager
def undo_at_end(undo: Callable[[], object]) -> Iterator[None]:
    """Undo at the end, whatever happens. What ended the work is raised, with what undoing it met besides."""
    try:
        yield
    except BaseException as first:
        try:
            undo()
        except VnumaError as second:
            if isinstance(first, VnumaError):
                first.also(second)
            else:
                first.add_note(str(second))
        raise
    undo()


def finish(
    context: VmContext, attempt: Attempt, outcome: Outcome, reason: str | None, detail: str | None
) -> None:
    """Settle an attempt; its cell follows."""
    with context.store.write() as connection:
        attempts.finish(connection, attempt.id, context.token, outcome, reason=reason, detail=detail)
