"""vCenter that is away for a while: the work is begun again, later and later, and not for ever.

What is repeated is a piece of work that reads the VM first and computes what is left to do, never a
single call: a change whose answer was lost is found made, and is not made twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import Connection

from vnuma.engine.lease.attempt import Attempt
from vnuma.engine.lease.context import VmContext
from vnuma.engine.lease.identity import find_own
from vnuma.errors import CertificateRejected, EnvironmentProblem, Interrupted, StoreError, VCenterUnreachable
from vnuma.store import attempts, facts, runs
from vnuma.store.open import Store
from vnuma.store.rows import Vm
from vnuma.store.states import StopRequest
from vnuma.store.types import iso, utc_now
from vnuma.vsphere.connect import Session
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.wait import settle, spell

T = TypeVar("T")
Tell = Callable[[int, EnvironmentProblem, float], None]

_PASSING = (VCenterUnreachable, CertificateRejected)

RETRY = "retry"
"""Scope of the facts that tell of each repetition."""

RESTORING = "restoring"
"""What is repeated when a VM that is restored cannot be reached."""


@dataclass(frozen=True)
class VCenterRetry:
    """How long, and how often. Pauses double from `first_s` to `most_s`, each longer or shorter by half.

    Clock, sleep and draw are a test's to replace.
    """

    total_s: float
    first_s: float = 1.0
    most_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random

    def pause_s(self, tries: int) -> float:
        """Seconds to wait after so many tries."""
        step: float = min(self.most_s, self.first_s * 2 ** min(tries - 1, 30))
        return step * (0.5 + self.draw())


def retry_vcenter(work: Callable[[int], T], patience: VCenterRetry, tell: Tell) -> T:
    """What `work` returns. It is given the number of the try, from 1, and must be safe to repeat.

    Only what passes by itself is waited for: a vCenter that does not answer, that has ended the
    session, or that cannot do it now, and a proxy that shows a certificate of its own. `tell` hears of
    each such failure and of the pause after it, and may raise to end it. Raises the last of these errors
    when patience is at its end.
    """
    began, tries = patience.clock(), 0
    while True:
        tries += 1
        try:
            return work(tries)
        except _PASSING as error:
            pause = patience.pause_s(tries)
            if patience.clock() - began + pause > patience.total_s:
                raise _out_of_patience(error, tries, patience) from error
            tell(tries, error, pause)
            patience.sleep(pause)


def _out_of_patience(error: EnvironmentProblem, tries: int, patience: VCenterRetry) -> EnvironmentProblem:
    times = "once" if tries == 1 else f"{tries} times in {spell(patience.total_s)}"
    return type(error)(f"{error.what} Tried {times}.", fix=error.fix)


def report_retry(
    store: Store,
    vm: Vm,
    doing: str,
    patience: VCenterRetry,
    say: Callable[[str], None] = lambda _: None,
) -> Tell:
    """A `tell` for work on a VM outside an attempt: it keeps it as a fact of the VM, and says so."""
    until = utc_now() + timedelta(seconds=patience.total_s)

    def tell(tries: int, error: EnvironmentProblem, pause: float) -> None:
        retry_at = utc_now() + timedelta(seconds=pause)
        told = {"try": tries, "what": error.what, "again": iso(retry_at), "until": iso(until)}
        with suppress(StoreError), store.write() as connection:
            facts.add_vm_facts(connection, vm.id, RETRY, {doing: told})
        say(f"{doing} {vm.name}: {_retry_words(told)}")

    return tell


def retried_now(connection: Connection, vm: Vm, doing: str) -> str | None:
    """Why work on a VM is being repeated, how often and until when; None where it is not."""
    last = facts.last_of_vm(connection, vm.run_id, vm.vm_key, RETRY)
    if last is None or last.key != doing or not isinstance(last.value, dict):
        return None
    return _retry_words(last.value) if utc_now() <= datetime.fromisoformat(str(last.value["until"])) else None


def _retry_words(told: Mapping[str, object]) -> str:
    """What failed, the next try and the last, by this machine's clock: screens may stand still."""
    again, until = (
        f"{datetime.fromisoformat(str(told[key])).astimezone():%H:%M:%S}" for key in ("again", "until")
    )
    return f"{told['what']} Try {int(str(told['try'])) + 1} at {again}, giving up at {until}."


def on_vsphere(
    context: VmContext,
    attempt: Attempt,
    name: str,
    work: Callable[[Session, VmRef, int], T],
    patience: VCenterRetry | None = None,
) -> T:
    """A step's work on the VM, in a session of its own for each try, with the VM's lock held.

    After a failure the VM's tasks are waited for, so that what was begun is seen ended. Each repetition
    shows in the attempt's step and stays with it as a fact. Raises what `work` raises, LeaseLost, and
    Interrupted when the run is asked to stop meanwhile.
    """
    task_s = context.study.power.task_timeout_s

    def once(tries: int) -> T:
        with context.vsphere() as session:
            ref = find_own(session, context.vm)
            if tries > 1:
                _say_step(context, attempt, name)
                settle(session, ref, task_s)
            return work(session, ref, tries)

    def tell(tries: int, error: EnvironmentProblem, pause: float) -> None:
        _say_step(context, attempt, f"{name}: {error.what} Trying again in {pause:.0f} s, try {tries + 1}")
        with context.store.write() as connection:
            if runs.get_run(connection, context.run.name).stop_requested is StopRequest.NOW:
                raise Interrupted(
                    f"{context.run.name} was asked to stop. {error.what}",
                    fix=f"vnuma run --resume {context.run.name}",
                )
            facts.add_attempt_facts(
                connection, attempt.id, context.token, RETRY, {name: {"try": tries, "what": error.what}}
            )

    return retry_vcenter(once, patience or VCenterRetry(context.study.power.vcenter_retry_s), tell)


def _say_step(context: VmContext, attempt: Attempt, words: str) -> None:
    with context.store.write() as connection:
        attempts.set_step(connection, attempt.id, context.token, words)
