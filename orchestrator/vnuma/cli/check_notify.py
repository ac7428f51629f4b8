"""Notifications of a recorded check: new findings, drift, and a failed check."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vnuma.cli.screen import say
from vnuma.domain.vm.plain_text import counted
from vnuma.errors import VnumaError

if TYPE_CHECKING:
    from vnuma.checks.result import CheckResult
    from vnuma.engine.notify.notifier import Notifier

    Tell = Callable[[CheckResult], None]

_NAMED = 10


@contextmanager
def notifying(site: Path | None) -> Iterator[Tell]:
    """Send notifications about the check inside, as the inventory `site` says; None: none.

    A failed notification is only shown. Raises InputError for an invalid vnuma_notify.
    """
    if site is None:
        yield lambda _result: None
        return
    from vnuma.engine.access.inventory import read_targets
    from vnuma.engine.notify.channels import ready_channels
    from vnuma.engine.notify.notifier import Notifier

    notifier = Notifier(*ready_channels(site, read_targets(site)))
    try:
        yield lambda result: _tell(notifier, result)
    except VnumaError as error:
        _hear(
            notifier,
            "check_failed",
            simulated=None,  # only a reading shows whether the source is a lab
            words=error.what,
            exit_code=error.exit_code,
            next=error.fix,
        )
        raise
    finally:
        notifier.wait()
        for words in notifier.failures():
            with suppress(OSError):
                say(f"Not sent  {words}", sys.stderr)


def _tell(notifier: Notifier, result: CheckResult) -> None:
    """New findings since the last recorded check; the first one has nothing to compare with."""
    simulated = result.simulated is not None
    new = [item.judged for item in result.groups if item.judged.change == "new" and not item.judged.waived]
    if new:
        found = [f"{item.severity.value} {item.finding.rule} {item.finding.name}" for item in new]
        words = f"{counted(len(new), 'new finding')}: {_some(found)}."
        _hear(notifier, "new_findings", simulated=simulated, words=words, next="vnuma check --history")
    drift = result.drift
    if drift and drift.any:
        from vnuma.report.check import drift_words

        found = [
            f"{vm.facts.name}: {drift_words.difference_words(one)}; {drift_words.author_words(one)}"
            for vm in drift.vms
            for one in vm.differences
        ]
        found += [f"{one.name}: missing" for one in drift.only_design]
        words = f"{counted(len(drift.vms) + len(drift.only_design), 'VM')} not as designed: {_some(found)}."
        _hear(notifier, "drift", simulated=simulated, words=words, next=None)


def _some(found: list[str]) -> str:
    left = len(found) - _NAMED
    return "; ".join(found[:_NAMED]) + (f"; and {left:,} more" if left > 0 else "")


def _hear(notifier: Notifier, event: str, *, simulated: bool | None, **more: object) -> None:
    from vnuma.engine.notify.message import event_line

    notifier.hear(event_line(event, None, simulated=simulated, **more))
