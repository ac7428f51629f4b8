"""What `vnuma run` does: start, resume or join a run, follow it to its end, and show how it ended."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from vnuma.cli.crash import report_bug, report_bug_within
from vnuma.cli.events import EventLog, Listener
from vnuma.cli.options import inventory_of, reached_by, read_study
from vnuma.cli.progress import watching
from vnuma.cli.screen import can_ask, echo, note, require_yes, say
from vnuma.domain.study.study import Study
from vnuma.engine.access.context import open_run
from vnuma.engine.access.inventory import Inventory, of_site
from vnuma.engine.access.places import store_url
from vnuma.engine.audit.log import note_of_run
from vnuma.engine.lease.hours import refuse_if_closed
from vnuma.engine.lease.supervision import is_worked_on
from vnuma.engine.notify import Notifier, ready_channels
from vnuma.engine.preflight.findings import Permit
from vnuma.engine.preflight.plan import TargetPlan
from vnuma.engine.restore.restore_leftovers import restore_after_death
from vnuma.engine.run.oversight import SupervisedRun, Watch
from vnuma.engine.run.progress import Progress, progress_of
from vnuma.engine.run.run_outcome import RunOutcome, end_of
from vnuma.engine.run.sites import (
    add_site,
    begin_site,
    part_at_site,
    refuse_file,
    refuse_moved,
    settle_if_last,
)
from vnuma.engine.run.start import StudyRequest, create_run, prepare, reopen, what_it_did
from vnuma.engine.run.supervise import supervise
from vnuma.engine.run.traces import send_traces, wanted
from vnuma.errors import StoreError, UsageError, VnumaError, from_os_error
from vnuma.store.open import Store, open_store
from vnuma.store.place import parse_place
from vnuma.store.rows import Run, RunState
from vnuma.store.runs import unfinished
from vnuma.store.tables import utc_now


def run_to_end(work: SupervisedRun, follow: list[Listener], notifier: Notifier) -> None:
    """Run it, show the outcome, and notify people. Raises the error that decides the exit code."""
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
    with store.read() as connection:
        return progress_of(connection, run.name)


def _follow(store: Store, run: Run, events: EventLog, supervised: Callable[[Watch], RunOutcome]) -> None:
    """Show a supervised run and its outcome. Raises the error that decides the exit code."""
    ended = None
    try:
        try:
            with watching() as show:

                def watch(progress: Progress) -> None:
                    events.show(progress)
                    show(progress)

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
    if not wanted():
        return
    try:
        send_traces(store, run, since)
    except (VnumaError, OSError) as error:
        with suppress(OSError):
            say(f"Not sent  traces: {error}", sys.stderr)


def _show_unsent(store: Store, run: Run, notifier: Notifier) -> None:
    """Show which notifications failed and record them in the audit log; neither ends the run."""
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
            say(f"{'Restored' if vm.at_baseline else 'Problem '}  {vm.restore_words}", sys.stderr)
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
        if problem is ended.worst:
            continue
        if isinstance(problem, VnumaError):
            say(str(problem), sys.stderr)
            report_bug_within(problem)
        else:
            report_bug(problem)


def _last_words(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return "The play's last lines:\n" + "\n".join(f"  {line[:160]}" for line in lines[-6:])


_RUN = re.compile(r"[\w-]+\.\d+|latest")
"""A run's name in place of a study file."""


def start(
    path: Path,
    inventory: Path | None,
    url: str | None,
    permit: Permit,
    follow: list[Listener],
    *,
    create_only: bool,
    ask: bool,
) -> None:
    asking = _asking(path, inventory, permit)
    targets, where = asking.targets, asking.inventory
    channels = ready_channels(where, targets)  # first: a mistake there is found in closed hours too
    if not create_only:
        refuse_if_closed(asking.study, datetime.now(UTC))
    address = store_url(url)
    opened = open_store(address)
    for site in asking.sites:
        refuse_file(opened.place, site)
    here = of_site(targets, None)
    for words in restore_after_death(opened, here, where):
        say(words, sys.stderr)
    _show_unfinished(opened, asking)
    plans, client = prepare(asking)
    if ask and can_ask():
        _ask(asking.study, plans, reached_by(where, targets))
    created = create_run(opened, asking, plans, client)
    if create_only:
        _show_created(created.name, where)
        return
    for site in asking.sites:
        note(f"There     vnuma run --resume {created.name} --site {site} -i INVENTORY")
    work = SupervisedRun(opened, address, created, asking.study, here, where)
    run_to_end(work, follow, Notifier(*channels))


def _asking(path: Path, inventory: Path | None, permit: Permit) -> StudyRequest:
    """The study with its VMs. Raises UsageError and InputError."""
    if _RUN.fullmatch(str(path)) and not path.exists():
        raise UsageError(f"{path} is a run, not a study file.", fix=f"vnuma run --resume {path}")
    study, text = read_study(path)
    where = inventory_of(inventory, study.vms)
    return StudyRequest(study, text, where.study_targets(study), permit, where)


def _show_unfinished(store: Store, asking: StudyRequest) -> None:
    """Name a run of the same study that was killed or stopped: this one starts anew."""
    with store.read() as connection:
        run = unfinished(connection, asking.study.name, asking.text)
        if run and not is_worked_on(connection, run):
            note(f"Found     {run.name} has not finished. To continue it: vnuma run --resume {run.name}")


def _ask(study: Study, plans: Mapping[str, TargetPlan], reached: str) -> None:
    """Show what will change and continue only after a yes. Raises UsageError."""
    from vnuma.cli.plan_text import called, summary  # loads numpy

    say(summary(study, {called(name, plan): plan for name, plan in plans.items()}), sys.stderr)
    say(f"Uses     {reached}", sys.stderr)
    require_yes("Start?")


def resume(
    name: str, inventory: Path | None, url: str | None, follow: list[Listener], *, create_only: bool
) -> None:
    opened, row, parsed = open_run(name, url)
    # Every cell is valid and every VM restored, so that nothing needs touching again.
    if row.state == RunState.FINISHED and _progress(opened, row).is_complete:
        say(f"{row.name} is complete: nothing was done.", sys.stderr)
        note(f"Next      vnuma results {row.name}    vnuma report {row.name}")
        return
    where = _stored_inventory(inventory, row, parsed)
    targets = where.study_targets(parsed)
    channels = ready_channels(where, targets)
    refuse_if_closed(parsed, datetime.now(UTC))
    refuse_moved(opened, row, targets)
    continued, progress = reopen(opened, row.name, inventory)
    if create_only:
        _show_created(row.name, where)
        return
    notifier = Notifier(*channels)
    say(f"Found     {row.name}, {row.state}: {what_it_did(progress)}", sys.stderr)
    say(f"Keeps     {progress.valid} valid cells of {progress.total}", sys.stderr)
    here = of_site(targets, None)
    run_to_end(SupervisedRun(opened, store_url(url), continued, parsed, here, where), follow, notifier)


def work_at(site: str, name: str, inventory: Path | None, url: str | None, follow: list[Listener]) -> None:
    """Work on the VMs of one site in a stored run. The controller's process tells people about the run."""
    address = store_url(url)
    refuse_file(parse_place(address), site)
    opened, row, parsed = open_run(name, url)
    part = part_at_site(opened, row, site)
    where = _stored_inventory(inventory, row, parsed)
    targets = where.study_targets(parsed)
    own = of_site(targets, site)
    refuse_if_closed(parsed, datetime.now(UTC))
    for words in restore_after_death(opened, own, where, site):
        say(words, sys.stderr)
    add_site(opened, part, StudyRequest(parsed, "", targets, Permit(), where))
    if not begin_site(opened, part):
        say(f"{site} has completed its part of {row.name}: nothing was done.", sys.stderr)
        return
    try:
        run_to_end(SupervisedRun(opened, address, part, parsed, own, where), follow, Notifier([]))
    finally:
        settle_if_last(opened, part)


def _stored_inventory(given: Path | None, row: Run, study: Study) -> Inventory:
    """The inventory given now, else the run's own."""
    stored = given or (Path(row.inventory) if row.inventory else None)
    return Inventory(stored) if stored else inventory_of(None, study.vms)


def _show_created(name: str, inventory: Inventory) -> None:
    echo(name)
    say(f"Next      ansible-playbook -i {inventory} vnuma.vnuma.study -e vnuma_run={name}", sys.stderr)
