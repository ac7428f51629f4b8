"""A run from its first cell to its end: shown, told to listeners, and its outcome reported."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from vnuma.cli.events import EventLog
from vnuma.cli.screen import note, say
from vnuma.errors import StoreError, VnumaError, from_os_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from vnuma.cli.events import Listener
    from vnuma.engine.notify import Notifier
    from vnuma.engine.run.oversight import Watch, Work
    from vnuma.engine.run.progress import Progress
    from vnuma.engine.run.run_outcome import RunOutcome
    from vnuma.store.open import Store
    from vnuma.store.rows import Run


def run_to_end(work: Work, follow: list[Listener], notifier: Notifier) -> None:
    """Run it, show the outcome, and notify people. Raises the error that decides the exit code."""
    from vnuma.engine.run.supervise import supervise
    from vnuma.store.tables import utc_now

    store, run = work.store, work.run
    events, since = EventLog(*follow, notifier.hear), utc_now()
    events.start(_progress(store, run))
    notifier.wait()
    _show_unsent(store, run, notifier)
    if sys.stderr.isatty():
        note("Ctrl-C stops and restores everything.  In another shell: vnuma status")
    try:
        _follow(store, run, events, lambda watch: supervise(work, watch))
    finally:
        with suppress(KeyboardInterrupt):  # an impatient user's Ctrl-C does not change the exit code
            _send_traces(store, run, since)
            notifier.wait()
        _show_unsent(store, run, notifier)


def _progress(store: Store, run: Run) -> Progress:
    from vnuma.engine.run.progress import progress_of

    with store.read() as connection:
        return progress_of(connection, run.name)


def _follow(store: Store, run: Run, events: EventLog, supervised: Callable[[Watch], RunOutcome]) -> None:
    """Show a supervised run and its outcome. Raises the error that decides the exit code."""
    from vnuma.cli.progress import watching
    from vnuma.engine.run.run_outcome import end_of

    ended = None
    try:
        try:
            with watching(events.show) as watch:
                ended = supervised(watch)
            events.show(ended.progress)
            _tell(ended)
        except OSError as error:  # the error that decides the exit code takes precedence
            if ended:
                ended.raise_for_outcome()
            raise from_os_error(error) from error
        ended.raise_for_outcome()
        answer = _show_part(run, ended) if run.site else _show_answer(store, ended)
        events.end("ended", None, answer)
    except Exception as error:
        if ended is None:
            with suppress(VnumaError):
                events.show(_progress(store, run))
        events.end(end_of(ended, error), error)
        raise


def _show_part(run: Run, ended: RunOutcome) -> str:
    """Show how a site's part ended; the run's answer is the controller's."""
    words = f"{ended.progress.valid} of {ended.progress.total} cells valid at {run.site}."
    say(f"{run.name}: {words}", sys.stderr)
    return words


def _show_answer(store: Store, ended: RunOutcome) -> str:
    """Show the answer of a complete run, and return it in one line."""
    from vnuma.report.model.model import load_run
    from vnuma.report.terminal.run_text import answer_sentences, answer_text

    run = ended.progress.run.name
    valid = f"{ended.progress.valid} of {ended.progress.total} cells valid."
    loaded = load_run(store, run)
    say(f"{run}: {valid}", sys.stderr)
    say(answer_text(loaded), sys.stderr)
    note(f"Next      vnuma results {run}    vnuma report {run}")
    return " ".join([valid, *answer_sentences(loaded)])


def _send_traces(store: Store, run: Run, since: datetime) -> None:
    """Send them if OTEL_* says so. A failure is shown and does not end the run."""
    from vnuma.engine.run.traces import send_traces, wanted

    if not wanted():
        return
    try:
        send_traces(store, run, since)
    except (VnumaError, OSError) as error:
        with suppress(OSError):
            say(f"Not sent  traces: {error}", sys.stderr)


def _show_unsent(store: Store, run: Run, notifier: Notifier) -> None:
    """Show which notifications failed and record them in the audit log; neither ends the run."""
    from vnuma.engine.audit.log import note_of_run

    for words in notifier.failures():
        with suppress(OSError):
            say(f"Not sent  {words}", sys.stderr)
        try:
            note_of_run(store, run, "notify failed", words)
        except StoreError as error:
            with suppress(OSError):
                say(f"Note      {error.what}", sys.stderr)


def _tell(ended: RunOutcome) -> None:
    """The outcome, except the error that decides the exit code."""
    for vm in ended.progress.vms:
        if vm.ended_by:
            say(f"Ended     {vm.name}, {vm.ended_by}", sys.stderr)
        if vm.restore_words:
            say(f"Restored  {vm.restore_words}", sys.stderr)
        for words in vm.databases_left:
            say(f"Left      {vm.name}, {words}", sys.stderr)
        if vm.note:
            told = None if vm.lasting and ended.names_lasting_causes else vm.note_detail
            why = "".join(f"\n  {line.strip()}" for line in (told or "").splitlines())
            say(f"Note      {vm.name}, {vm.note}{why}", sys.stderr)
    if ended.progress.retries:
        say(f"Note      vSphere requests repeated: {ended.progress.retries}.", sys.stderr)
    nothing_ran = not any(vm.last for vm in ended.progress.vms)
    if nothing_ran and not ended.stopped and ended.play_output:
        say(_last_words(ended.play_output), sys.stderr)
    for problem in ended.problems:
        if problem is not ended.worst:
            _tell_problem(problem)


def _tell_problem(problem: Exception) -> None:
    from vnuma.cli.crash import report_bug, report_bug_within

    if not isinstance(problem, VnumaError):
        report_bug(problem)
        return
    say(str(problem), sys.stderr)
    report_bug_within(problem)


def _last_words(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return "The play's last lines:\n" + "\n".join(f"  {line[:160]}" for line in lines[-6:])
