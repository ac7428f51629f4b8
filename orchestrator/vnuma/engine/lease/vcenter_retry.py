"""Repeat work while vCenter is temporarily unavailable, with growing pauses and a limit.

Work is repeated from reading the VM and computing what is left to do, never as a single call. So a change
whose answer was lost is not made twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from vnuma.engine.access.context import VmContext
from vnuma.engine.lease.attempt import add_facts, say_step
from vnuma.engine.lease.whose_vm import find_own
from vnuma.errors import CertificateRejected, EnvironmentProblem, Interrupted, StoreError, VCenterUnreachable
from vnuma.store import facts, runs
from vnuma.store.open import Store
from vnuma.store.rows import Claim, Fact, StopRequest, Vm
from vnuma.store.tables import iso, utc_now
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.wait import settle, spell

T = TypeVar("T")
Tell = Callable[[int, EnvironmentProblem, float], None]

_PASSING = (VCenterUnreachable, CertificateRejected)

RETRY = "retry"
"""Scope of the facts about each retry, and about each wait of a restore."""

_WORDS_S = 30.0
"""How long the words of a wait are shown; they are renewed every few seconds."""

RESTORING = "restoring"
"""What is retried when a VM cannot be reached for its restore."""


@dataclass
class Haste:
    """Whether the user has asked again to stop: then nothing that fails for long is repeated."""

    asked: bool = False


HASTE = Haste()
"""Of this process. A signal handler sets it."""

_HASTY_S = 10.0
"""How long work is repeated that first failed when the user was in haste already: one bad answer must not
leave a VM off.
"""

_HASTY_PAUSE_S = 1.0

_LOOK_S = 0.5


def _pause(seconds: float) -> None:
    """Sleep that long, or until the user gets into haste; at most a second for one who is."""
    hasty = HASTE.asked
    until = time.monotonic() + (min(seconds, _HASTY_PAUSE_S) if hasty else seconds)
    while (hasty or not HASTE.asked) and (left_s := until - time.monotonic()) > 0:
        time.sleep(min(left_s, _LOOK_S))


@dataclass(frozen=True)
class VCenterRetry:
    """For how long and how often to retry. Pauses double from `first_s` to `most_s`, varied by half.

    Tests replace clock, sleep and draw.
    """

    total_s: float
    first_s: float = 1.0
    most_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = _pause
    draw: Callable[[], float] = random.random

    def pause_s(self, tries: int) -> float:
        """Seconds to wait after that many attempts."""
        step: float = min(self.most_s, self.first_s * 2 ** min(tries - 1, 30))
        return step * (0.5 + self.draw())


def retry_vcenter(work: Callable[[int], T], patience: VCenterRetry, tell: Tell) -> T:
    """Call `work` with the attempt's number, from 1, until it succeeds. It must be safe to repeat.

    Retries only temporary errors: a vCenter that does not answer, ended the session or cannot do it now, and
    a proxy that shows its own certificate. `tell` is called with each failure and the next pause, and may
    raise to stop. Raises the last error when `patience` ends, or the user's (`HASTE`): at once while it
    retries, else after `_HASTY_S`.
    """
    end, tries, hasty = patience.clock() + patience.total_s, 0, False
    while True:
        tries += 1
        try:
            return work(tries)
        except _PASSING as error:
            if tries == 1 and HASTE.asked:
                hasty, end = True, min(end, patience.clock() + _HASTY_S)
            pause = min(patience.pause_s(tries), _HASTY_PAUSE_S) if hasty else patience.pause_s(tries)
            if (HASTE.asked and not hasty) or patience.clock() + pause > end:
                raise _out_of_patience(error, tries, patience) from error
            tell(tries, error, pause)
            patience.sleep(pause)
            if HASTE.asked and not hasty:
                raise _out_of_patience(error, tries, patience) from error


def _out_of_patience(error: EnvironmentProblem, tries: int, patience: VCenterRetry) -> EnvironmentProblem:
    times = "once" if tries == 1 else f"{tries} times"
    within = "" if tries == 1 or HASTE.asked else f" in {spell(patience.total_s)}"
    return type(error)(f"{error.what} Tried {times}{within}.", fix=error.fix)


def report_retry(
    store: Store, vm: Vm, doing: str, patience: VCenterRetry, say: Callable[[str], None] = lambda _: None
) -> Tell:
    """A `tell` for work on a VM outside an attempt: store the retry as a fact of the VM, and show it."""
    until = utc_now() + timedelta(seconds=patience.total_s)

    def tell(tries: int, error: EnvironmentProblem, pause: float) -> None:
        again, end = ((utc_now() + timedelta(seconds=pause)).astimezone(), until.astimezone())
        words = f"{error.what} Try {tries + 1} at {again:%H:%M:%S}, giving up at {end:%H:%M:%S}."
        _show(store, vm, doing, {"try": tries, "words": words, "until": iso(until)})
        say(f"{doing} {vm.name}: {words}")

    return tell


def report_wait(store: Store, vm: Vm, doing: str, say: Callable[[str], None]) -> Callable[[str], None]:
    """A `say` for a wait outside an attempt, which also stores its words for the progress of the run."""

    def tell(words: str) -> None:
        until = iso(utc_now() + timedelta(seconds=_WORDS_S))
        _show(store, vm, doing, {"words": words, "until": until})
        say(words)

    return tell


def _show(store: Store, vm: Vm, doing: str, told: dict[str, object]) -> None:
    with suppress(StoreError), store.write() as connection:
        facts.add_vm_facts(connection, vm.id, RETRY, {doing: told})


def is_repeated(fact: Fact) -> bool:
    """Whether a fact of the scope RETRY is a request that was repeated, and not the words of a wait."""
    return isinstance(fact.value, dict) and "try" in fact.value


def retried_now(last: Fact | None, doing: str) -> str | None:
    """Why work on a VM is being retried or waits, how often and until when, by the clock of its machine;
    None where it does not. `last` is its latest fact of the scope RETRY.
    """
    told = last.value if last and last.key == doing else None
    if not isinstance(told, dict) or utc_now() > datetime.fromisoformat(str(told["until"])):
        return None
    return str(told["words"]) if "words" in told else None


def report_step(context: VmContext, attempt: Claim, name: str) -> Callable[[str], None]:
    """A `say` for a step that waits, shown with it. Raises Interrupted once the run is asked to stop."""

    def say(words: str) -> None:
        say_step(context, attempt, f"{name}: {words}")
        refuse_if_stopped(context, words)

    return say


def refuse_if_stopped(context: VmContext, doing: str) -> None:
    """Raise Interrupted, saying what was waited for, once the run is asked to stop."""
    with context.store.read() as connection:
        if runs.get_run(connection, context.run.name).stop_requested is StopRequest.NOW:
            raise Interrupted(
                f"{context.run.name} was asked to stop. {doing}",
                fix=f"vnuma run --resume {context.run.name}",
            )


def on_vsphere(
    context: VmContext,
    attempt: Claim,
    name: str,
    work: Callable[[Session, VmRef, int], T],
) -> T:
    """Do a step's work on the VM: a session for each attempt, with the VM locked.

    After a failure, wait for the VM's running tasks. Each retry is shown and stored as a fact. Raises what
    `work` raises, LeaseLost, and Interrupted when the run is asked to stop.
    """
    task_s = context.study.power.task_timeout_s

    def once(tries: int) -> T:
        with context.vsphere() as session:
            ref = find_own(session, context.vm)
            if tries > 1:
                say_step(context, attempt, name)
                settle(session, ref, task_s)
            return work(session, ref, tries)

    say = report_step(context, attempt, name)

    def tell(tries: int, error: EnvironmentProblem, pause: float) -> None:
        say(f"{error.what} Trying again in {pause:.0f} s, try {tries + 1}")
        add_facts(context, attempt, RETRY, {name: {"try": tries, "what": error.what}})

    return retry_vcenter(once, VCenterRetry(context.study.power.vcenter_retry_s), tell)


def on_hypervisor(
    context: VmContext, attempt: Claim, name: str, work: Callable[[Session, VmRef, int], T]
) -> T | None:
    """As `on_vsphere`; without a hypervisor there is nothing to do, and the answer is None."""
    return on_vsphere(context, attempt, name, work) if context.target.vcenter else None
