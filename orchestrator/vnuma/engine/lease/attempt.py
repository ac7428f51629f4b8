"""An attempt at a cell: its steps, and how each ending is recorded.

A failing step stores outcome and reason before its error is raised further, so the cell is settled even if
the play continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from vnuma.engine.access.context import VmContext
from vnuma.engine.lease.hours import refuse_if_over
from vnuma.errors import (
    AttemptFailed,
    InputError,
    Interrupted,
    LeaseLost,
    StoreAway,
    StoreError,
    StoreUnwritable,
    VnumaError,
    reason_word,
)
from vnuma.store import attempts, facts
from vnuma.store.rows import Claim, Outcome
from vnuma.store.tables import utc_now


def attempt_of(document: Mapping[str, Any]) -> Claim:
    """The attempt in a step's document. Raises InputError."""
    try:
        return Claim(**document)
    except TypeError:
        raise InputError(
            "option attempt is not a valid attempt.",
            fix="Pass the value that vnuma.vnuma.cell_claim returned.",
        ) from None


@contextmanager
def step(context: VmContext, attempt: Claim, name: str) -> Iterator[None]:
    """Run one step of an attempt: record its start, and its failure if it fails.

    No step starts when the allowed hours leave only the time to restore the VM. Raises whatever the step
    raises. A lost lease is not recorded, since the VM belongs to another process then. A store that is away
    or full uses up no attempt.
    """
    say_step(context, attempt, name)
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
    except (StoreAway, StoreUnwritable) as error:
        with suppress(StoreError):  # an attempt left open counts as interrupted
            finish(context, attempt, Outcome.INTERRUPTED, reason_word(type(error)), str(error))
        raise
    except VnumaError as error:
        finish(context, attempt, Outcome.FAILED, reason_word(type(error)), str(error))
        raise
    except Exception as error:
        # A bug, or an unexpected vSphere fault: an attempt left open would look like an interruption.
        finish(context, attempt, Outcome.FAILED, reason_word(type(error)), f"{type(error).__name__}: {error}")
        raise


def say_step(context: VmContext, attempt: Claim, words: str) -> None:
    """Store the attempt's present step, which the progress shows."""
    with context.store.write() as connection:
        attempts.set_step(connection, attempt.id, context.token, words)


def add_facts(context: VmContext, attempt: Claim, scope: str, values: Mapping[str, object]) -> None:
    with context.store.write() as connection:
        facts.add_attempt_facts(connection, attempt.id, context.token, {scope: values})


def finish(
    context: VmContext, attempt: Claim, outcome: Outcome, reason: str | None, detail: str | None
) -> None:
    with context.store.write() as connection:
        attempts.finish(connection, attempt.id, context.token, outcome, reason=reason, detail=detail)
