"""`vnuma run`: measure a study and restore the VMs."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.cli.completion import run_names, study_files
from vnuma.cli.events import EventLog, following
from vnuma.cli.options import (
    InventoryOption,
    PermitOptions,
    StoreOption,
    reached_by,
    read_study,
    study_inventory,
)
from vnuma.cli.screen import echo, note, require_yes, say
from vnuma.errors import InputError, StoreError, UsageError, VnumaError, from_os_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from vnuma.cli.events import Listener
    from vnuma.domain.study.study import Study
    from vnuma.engine.access.target import AnyTarget
    from vnuma.engine.notify.notifier import Notifier
    from vnuma.engine.preflight.permit import Permit
    from vnuma.engine.preflight.target_plan import TargetPlan
    from vnuma.engine.run.run_outcome import RunOutcome
    from vnuma.store.open import Store
    from vnuma.store.rows import Run


def run(
    study: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="A study file.", autocompletion=study_files)
    ] = None,
    *,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN", help="Continue this run.", autocompletion=run_names),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and plan only; the same as vnuma plan.")
    ] = False,
    create_only: Annotated[
        bool,
        typer.Option(
            "--create-only",
            help="Check, store the run and print its name; then start it by a playbook or AWX. With "
            "--resume: make a stored run ready for that.",
        ),
    ] = False,
    events: Annotated[
        str | None,
        typer.Option("--events", metavar="FILE", help="Write events as JSON lines; - is standard output."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start without asking.")] = False,
    allowed: PermitOptions,
    inventory: InventoryOption = None,
    store: StoreOption = None,
) -> None:
    """Run a study: shape, boot, verify and measure every cell, then restore the VMs.

    On a terminal it shows what will change and asks first; elsewhere it starts at once. Before that, without
    asking, it restores VMs that a dead controller left changed. Ctrl-C stops after the current iteration and
    restores the VMs; a second Ctrl-C stops at once, and still restores them.

    If the inventory requires another person's approval (vnuma_approval), the run is stored and waits.

    Examples: vnuma run studies/quick.yml; vnuma run --resume quick.4;
    vnuma run STUDY --production --ticket CHG0031234
    """
    if (study is None) == (resume is None):
        raise UsageError("Give either a study file or --resume RUN.", fix="vnuma run studies/quick.yml")
    if create_only and dry_run:
        raise UsageError(
            "--create-only stores a run, --dry-run does not: give one of them.",
            fix="vnuma run studies/quick.yml --create-only",
        )
    from vnuma.engine.lease.syslog import collector

    collector()  # refuses a wrong address before a run begins
    permit = allowed.permit()
    if resume:
        if allowed != PermitOptions():
            raise UsageError(
                "A resumed run keeps its permit: --production, --ticket and --require-tag need a study file.",
                fix=f"vnuma run --resume {resume}",
            )
        with following(events) as follow:
            _resume(resume, inventory, store, follow, create_only=create_only)
        return
    from pathlib import Path

    path = Path(str(study))
    if dry_run:
        from vnuma.cli.plan import plan

        plan(path, inventory=inventory, allowed=allowed)
        return
    with following(events) as follow:
        _start(path, inventory, store, permit, follow, create_only=create_only, ask=not (yes or create_only))


_RUN = re.compile(r"[\w-]+\.\d+|latest")
"""A run's name in place of a study file."""


def _start(
    path: Path,
    inventory: Path | None,
    url: str | None,
    permit: Permit,
    follow: list[Listener],
    *,
    create_only: bool,
    ask: bool,
) -> None:
    from datetime import UTC, datetime

    from vnuma.cli.plan_text import called
    from vnuma.engine.access.inventory import study_targets
    from vnuma.engine.access.places import store_url
    from vnuma.engine.lease.hours import refuse_if_closed
    from vnuma.engine.notify.channels import ready_channels
    from vnuma.engine.notify.notifier import Notifier
    from vnuma.engine.run.approval import is_required, refuse_unapproved
    from vnuma.engine.run.recover import restore_after_death
    from vnuma.engine.run.start import create_run
    from vnuma.engine.sites.planning import Asking, prepare_everywhere
    from vnuma.store.open import open_store

    if _RUN.fullmatch(str(path)) and not path.exists():
        raise UsageError(f"{path} is a run, not a study file.", fix=f"vnuma run --resume {path}")
    parsed, text = read_study(path)
    where = study_inventory(inventory, parsed)
    targets = study_targets(where, parsed)
    channels = ready_channels(where, targets)
    if not create_only:
        refuse_if_closed(parsed, datetime.now(UTC))
    asking = Asking(parsed, text, targets, permit, where)
    if create_only and asking.nodes:
        raise UsageError(
            f"--create-only leaves the start to a playbook, which reaches no VM of {_named(asking.nodes)}.",
            fix=f"vnuma run {path}",
        )
    address = store_url(url)
    opened = open_store(address)
    for words in restore_after_death(opened, asking.here):
        say(words, sys.stderr)
    needed = is_required(where, targets)
    prepared, said = prepare_everywhere(asking, opened, needs_approval=needed)
    for words in said:
        say(words, sys.stderr)
    if ask and sys.stdin.isatty() and sys.stderr.isatty():
        question = "Store this run for approval?" if needed else "Start?"
        named = {called(n, plan, asking.nodes.get(n)): plan for n, plan in prepared.plans.items()}
        _ask(parsed, named, reached_by(where, targets), question)
    created = create_run(opened, prepared, where)
    if create_only:
        echo(created.name)
        say(_by_hand(created.name, where), sys.stderr)
        return
    refuse_unapproved(opened, created)
    _supervise(opened, address, created, parsed, targets, where, follow, Notifier(*channels))


def _named(nodes: Mapping[str, str]) -> str:
    return ", ".join(sorted(set(nodes.values())))


def _ask(study: Study, plans: Mapping[str, TargetPlan], reached: str, question: str) -> None:
    """Show what will change and continue only after a yes. Raises UsageError."""
    from vnuma.cli.plan_text import summary

    say(summary(study, plans), sys.stderr)
    say(f"By       {reached}", sys.stderr)
    require_yes(question)


def _resume(
    name: str, inventory: Path | None, url: str | None, follow: list[Listener], *, create_only: bool
) -> None:
    from datetime import UTC, datetime
    from pathlib import Path

    from vnuma.engine.access.inventory import study_targets
    from vnuma.engine.access.places import store_url
    from vnuma.engine.lease.context import open_run
    from vnuma.engine.lease.hours import refuse_if_closed
    from vnuma.engine.notify.channels import ready_channels
    from vnuma.engine.notify.notifier import Notifier
    from vnuma.engine.run.approval import ask_where_required, refuse_unapproved
    from vnuma.engine.run.recover import reopen

    opened, row, parsed = open_run(name, url)
    if _is_complete(opened, row):
        say(f"{row.name} is complete: nothing was done.", sys.stderr)
        note(f"Next      vnuma results {row.name}    vnuma report {row.name}")
        return
    refuse_if_closed(parsed, datetime.now(UTC))
    where = inventory or (Path(row.inventory) if row.inventory else study_inventory(None, parsed))
    targets = study_targets(where, parsed)
    ask_where_required(opened, row, where, targets)
    refuse_unapproved(opened, row)
    found = reopen(opened, row.name, inventory)
    refuse_unapproved(opened, found.run)
    if create_only:
        echo(row.name)
        say(_by_hand(row.name, where), sys.stderr)
        return
    notifier = Notifier(*ready_channels(where, targets))
    say(f"Found     {row.name} was {row.state}: {found.words}", sys.stderr)
    say(f"Keeps     {found.progress.valid} valid cells of {found.progress.total}", sys.stderr)
    _supervise(opened, store_url(url), found.run, parsed, targets, where, follow, notifier)


def _is_complete(store: Store, run: Run) -> bool:
    """Whether every cell is valid and every VM restored, so that nothing needs touching again."""
    from vnuma.engine.run.progress import progress_of
    from vnuma.store.rows import RunState

    if run.state != RunState.FINISHED:
        return False
    with store.read() as connection:
        progress = progress_of(connection, run.name)
    return progress.valid == progress.total and all(vm.at_baseline for vm in progress.vms)


def _supervise(
    store: Store,
    url: str,
    run_row: Run,
    study: Study,
    targets: dict[str, AnyTarget],
    inventory: Path,
    follow: list[Listener],
    notifier: Notifier,
) -> None:
    """Run it, show the outcome, and notify people. Raises the error that decides the exit code."""
    from vnuma.cli.progress import watching
    from vnuma.engine.run.progress import progress_of
    from vnuma.engine.run.run_outcome import end_of
    from vnuma.engine.run.supervise import supervise
    from vnuma.engine.sites.following import elsewhere_of
    from vnuma.store.types import utc_now

    here, elsewhere = elsewhere_of(store, run_row, targets, inventory)
    events, since = EventLog(*follow, notifier.hear), utc_now()
    with store.read() as connection:
        events.start(progress_of(connection, run_row.name))
    notifier.wait()
    _show_unsent(store, run_row, notifier)
    if sys.stderr.isatty():
        note("Ctrl-C stops and restores everything.  In another shell: vnuma status")
    ended = None
    try:
        try:
            with watching(events.show) as watch:
                ended = supervise(store, url, run_row, study, here, inventory, watch, elsewhere)
            events.show(ended.progress)
            _tell(ended)
        except OSError as error:  # the error that decides the exit code takes precedence
            if ended:
                ended.raise_for_outcome()
            raise from_os_error(error) from error
        ended.raise_for_outcome()
        events.end("ended", None, _show_answer(store, ended))
    except Exception as error:
        if ended is None:
            with suppress(VnumaError), store.read() as connection:
                events.show(progress_of(connection, run_row.name))
        events.end(end_of(ended, error), error)
        raise
    finally:
        with suppress(KeyboardInterrupt):  # an impatient user's Ctrl-C does not change the exit code
            _send_traces(store, run_row, since)
            notifier.wait()
        _show_unsent(store, run_row, notifier)


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
    from vnuma.engine.access.places import audit_file
    from vnuma.engine.lease.audit import note_of_run
    from vnuma.engine.lease.audit_forward import forward, unsent

    for words in notifier.failures():
        with suppress(OSError):
            say(f"Not sent  {words}", sys.stderr)
        try:
            note_of_run(store, run, "notify failed", words)
        except StoreError as error:
            with suppress(OSError):
                say(f"Note      {error.what}", sys.stderr)
    log = audit_file(store.place)
    with suppress(OSError, InputError):
        forward(log, now=True)
        left = unsent(log)
        if left:
            say(f"Not sent  {left}", sys.stderr)


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
        say(f"Note      vSphere requests were repeated {ended.progress.retries} times.", sys.stderr)
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


def _by_hand(name: str, inventory: Path) -> str:
    return f"Next      ansible-playbook -i {inventory} vnuma.vnuma.study -e vnuma_run={name}"


def _last_words(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return "The play's last lines:\n" + "\n".join(f"  {line[:160]}" for line in lines[-6:])
