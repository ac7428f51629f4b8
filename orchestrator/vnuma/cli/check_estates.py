"""A check of estates by the design rules, what it writes, its recorded history, and its notifications."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.text import Text

from vnuma.checks.fix_as import Tool
from vnuma.checks.result import CheckResult
from vnuma.checks.rule import Severity
from vnuma.cli.check_options import CheckFormat, CheckOptions, FailOn
from vnuma.cli.evidence import read_text
from vnuma.cli.options import find_inventory, opened_store, read_study
from vnuma.cli.screen import console, echo, say, signed, width, write_out
from vnuma.domain.vm.estate import Estate
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.design_check import estates as live
from vnuma.engine.design_check.against_design import drift
from vnuma.engine.design_check.against_design import read_designs as read_intended
from vnuma.engine.design_check.check import CheckRequest, compare, run_check, sql_reader
from vnuma.engine.design_check.designed_vms import on_hosts, on_named_hosts
from vnuma.engine.design_check.history import earlier, history, record, require_same_estate
from vnuma.engine.design_check.host_evidence import placements
from vnuma.engine.notify import Notifier, event_line, ready_channels
from vnuma.errors import InputError, ThresholdMet, UsageError, VnumaError
from vnuma.estate.design import read_design, with_contradictions
from vnuma.estate.rvtools import read_rvtools
from vnuma.estate.snapshot import load
from vnuma.estate.waivers import load as load_waivers
from vnuma.report.check import as_data, as_history, as_markdown, as_sarif, as_text
from vnuma.report.check.as_fixes import as_fixes
from vnuma.report.check.as_text import WIDTH, heads, lines
from vnuma.report.check.words import NAMED, author_words, difference_words, headline, undecided_words
from vnuma.words.plain_text import counted, escaped, first_of
from vnuma.words.provenance import banner

_FORMAT_OF: dict[str, CheckFormat] = {
    ".json": "json",
    ".csv": "csv",
    ".sarif": "sarif",
    ".html": "html",
    ".md": "markdown",
}


def write(result: CheckResult, format_: CheckFormat, output: Path | None) -> None:
    """Print on the screen, or write a file and print its name. Raises InputError if it cannot be written.

    The file's ending chooses the format where none was asked for.
    """
    if output is not None and format_ == "table":
        format_ = _FORMAT_OF.get(output.suffix.lower(), "table")
    if format_ == "table" and output is None:
        _show(result)
        return
    _written(result, _text(result, format_), output)


def write_fixes(result: CheckResult, tool: Tool, output: Path | None) -> None:
    """The fixes of VMs as commands of a tool. Raises InputError if the file cannot be written."""
    _written(result, as_fixes(result, tool), output)


def _written(result: CheckResult, text: str, output: Path | None) -> None:
    write_out(text, output, "The check")
    if output is not None:
        _show_counts(result, output)


def _text(result: CheckResult, format_: CheckFormat) -> str:
    if format_ == "html":
        from vnuma.report.check.as_page import as_page

        return as_page(result)
    writers = {
        "table": lambda: "".join(f"{line}\n" for line, _ in as_text.lines(result)),
        "json": lambda: as_data.as_json(result),
        "csv": lambda: as_data.as_csv(result),
        "sarif": lambda: as_sarif.as_sarif(result),
        "markdown": lambda: as_markdown.as_markdown(result),
    }
    return writers[format_]()


def _show(result: CheckResult) -> None:
    """The table; colour marks the first word of a finding and adds no meaning."""
    screen = console()
    room = min(WIDTH, (width() or WIDTH + _SIGN) - _SIGN)
    first = heads(result, room)
    if result.simulated:
        screen.print(Text(escaped(banner(result.simulated))))
    for line, severity in lines(result, room):
        shown = line if line in first else signed(line)
        text = Text(escaped(shown))
        if severity:
            text.stylize(_STYLES[severity], 0, len(severity) + len(shown) - len(line))
        screen.print(text)


def _show_counts(result: CheckResult, output: Path) -> None:
    if result.simulated:
        echo(banner(result.simulated))
    echo(headline(result))
    echo(f"Wrote {output}")


_SIGN = 2
"""Width of the symbol before each line."""
_STYLES = {"block": "bold red", "warn": "yellow", "info": "blue"}


def judge(result: CheckResult, fail_on: FailOn | None, *, assumed: bool, least_percent: int) -> None:
    """Raise ThresholdMet for an unwaived finding of at least that severity, for drift where it counts, or if
    the topology of fewer VMs was checked. `assumed`: findings that assume defaults count.
    """
    if fail_on is None:
        return

    drift = result.drift
    if fail_on != "block" and drift and drift.any:
        first = (*(vm.facts.name for vm in drift.vms), *(one.name for one in drift.only_design))[0]
        raise ThresholdMet(
            f"{counted(len(drift.vms) + len(drift.only_design), 'VM')} not as designed in "
            f"{', '.join(drift.designs)}; the first is {first}.",
            fix="Restore the designed settings, or change the design.",
        )
    if fail_on == "drift":
        return
    found = [group for group in result.open(Severity(fail_on)) if assumed or not group.judged.finding.assumed]
    if found:
        worst = found[0].judged.finding
        raise ThresholdMet(
            f"{counted(len(found), 'finding')} of severity {fail_on} or worse, not waived; "
            f"the first is {worst.rule} on {worst.name}.",
            fix="Fix them, or accept them until a date in a waivers file: --waivers FILE",
        )
    if result.decided_percent < least_percent:
        unread = [f"not read: {first_of(result.unread, NAMED)}"] if result.unread else []
        raise ThresholdMet(
            f"Too little was evaluated: {'; '.join(filter(None, [*unread, undecided_words(result)]))}.",
            fix='Give what is missing (see "not evaluated"), or accept less: --least-evaluated PERCENT',
        )


Tell = Callable[[CheckResult], None]


def check_estates(given: CheckOptions) -> None:
    """Read, check, record, notify and write. Raises ThresholdMet, and typer.BadParameter."""
    given.refuse_contradictions()
    evidence = given.evidence
    asked = CheckRequest(
        filters=given.filters(),
        assume_defaults=given.assume_defaults,
        study=read_study(given.study)[0] if given.study else None,
        waivers=load_waivers(given.waivers) if given.waivers else (),
        placements=placements(read_text(str(evidence)), evidence) if evidence else {},
    )
    site = find_inventory(given.inventory) if given.live else None
    with notifying(site if given.all_ and given.record else None) as tell:
        intended = read_intended(given.against) if given.against else []
        if site:
            estates, asked = _live(site, asked, given)
        elif given.sql:
            raise UsageError("--sql needs running VMs.", fix="Use it with --vm, --study or --all.")
        elif given.planned:
            estates, present = _designed(given)
            asked = replace(asked, present=present)
        else:
            estates = _from_file(given.snapshot, given.rvtools)
        asked.filters.require_any(estates)
        result = run_check(estates, asked)
        if given.against:
            result = replace(result, drift=drift(intended, estates, asked.filters, site))
        if given.record:
            result = _recorded(result, given.store)
        tell(result)
    if given.baseline:
        then = earlier(given.baseline, asked)
        require_same_estate(result, then, given.baseline)
        result = compare(result, then)
    if given.fix_as:
        write_fixes(result, given.fix_as, given.output)
    else:
        write(result, given.format_, given.output)
    judge(result, given.fail_on, assumed=given.fail_on_assumed, least_percent=given.least_evaluated)


def show_history(given: CheckOptions) -> None:
    """Print the recorded checks: which findings are new, gone or unchanged, and for how long."""
    if given.format_ not in ("table", "json"):
        raise typer.BadParameter("--history is available as table or json.")
    since = _time(given.since) if given.since else None
    found = history(opened_store(given.store), since)
    if given.format_ == "json":
        echo(as_history.as_json(found), nl=False)
        return
    banner_shown = ""
    for one in found:
        if one.simulated and one.simulated != banner_shown:
            banner_shown = one.simulated
            echo(banner(banner_shown))
        for line in as_history.lines(one):
            say(line)


def _time(text: str) -> datetime:
    """A day or a moment; without a zone, UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"--since {text} is not a date. Write it as 2026-11-01.") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _recorded(result: CheckResult, store: str | None) -> CheckResult:
    """The recorded result, each finding marked as new or unchanged since the previous check."""
    before = record(opened_store(store, create=True), result)
    return compare(result, before) if before else result


def _live(site: Inventory, asked: CheckRequest, given: CheckOptions) -> tuple[Sequence[Estate], CheckRequest]:
    """The estates of running vCenters, and the SQL Servers to log in to if requested."""
    if given.sql:
        asked = replace(asked, sql=sql_reader(site.targets().values()))
    wanted = [given.vm] if given.vm else asked.study.vms if asked.study else None
    if wanted is not None:
        return live.read_some(site, wanted), asked
    if given.record:
        return live.read_changes(site, full=given.full, tags=bool(given.tag)), asked
    return (live.read_all_tagged(site) if given.tag else live.read_all(site)), asked


def _designed(given: CheckOptions) -> tuple[Sequence[Estate], Sequence[Estate]]:
    """The designs, and the site as it is now (of the snapshot; without one, nothing). Raises InputError."""
    found = with_contradictions([read_design(file) for file in given.planned])
    if not any(estate.vms for estate in found):
        first = next(item for estate in found for item in estate.unseen)
        raise InputError(
            f"No VM to check in {given.planned[0]}: it contains no readable VM.",
            fix=f"Correct {first.name}: {first.why}.",
        )
    present = load(given.snapshot) if given.snapshot else ()
    if given.host_nodes or given.cluster:
        there = given.look_ahead().location()
        return [on_hosts(estate, there, given.cluster) for estate in found], present
    return [on_named_hosts(estate, present) if present else estate for estate in found], present


def _from_file(snapshot: Path | None, rvtools: Path | None) -> Sequence[Estate]:
    """A file's estates. Raises InputError for a file without VMs: checking nothing would look like a pass."""
    found = load(snapshot) if snapshot else (read_rvtools(rvtools),) if rvtools else ()
    if not any(estate.vms for estate in found):
        raise InputError(
            f"No VM to check in {snapshot or rvtools}: it contains no readable VM.",
            fix="Save it again with an account that can see VMs: vnuma inventory save FILE",
        )
    return found


_NAMED = 10


@contextmanager
def notifying(site: Inventory | None) -> Iterator[Tell]:
    """Send notifications about the check inside, as the inventory `site` says; None: none.

    A failed notification is only shown. Raises InputError for an invalid vnuma_notify.
    """
    if site is None:
        yield lambda _result: None
        return

    notifier = Notifier(*ready_channels(site, site.targets()))
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
        words = f"{counted(len(new), 'new finding')}: {first_of(found, _NAMED, '; ')}."
        _hear(notifier, "new_findings", simulated=simulated, words=words, next="vnuma check --history")
    drift = result.drift
    if drift and drift.any:
        found = [
            f"{vm.facts.name}: {difference_words(one)}; {author_words(one)}"
            for vm in drift.vms
            for one in vm.differences
        ]
        found += [f"{one.name}: missing" for one in drift.only_design]
        number = counted(len(drift.vms) + len(drift.only_design), "VM")
        words = f"{number} not as designed: {first_of(found, _NAMED, '; ')}."
        _hear(notifier, "drift", simulated=simulated, words=words, next=None)


def _hear(notifier: Notifier, event: str, *, simulated: bool | None, **more: object) -> None:
    notifier.hear(event_line(event, None, simulated=simulated, **more))
