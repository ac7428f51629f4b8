"""What `vnuma check` writes in the requested format, and its exit code."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from vnuma.checks.fix_as import Tool
from vnuma.checks.result import CheckResult
from vnuma.checks.rule import Severity
from vnuma.cli.check_options import CheckFormat, FailOn
from vnuma.cli.screen import console, echo, signed, width, write_out
from vnuma.errors import ThresholdMet
from vnuma.report.check import as_csv, as_json, as_markdown, as_sarif, as_text
from vnuma.report.check.as_fixes import as_fixes
from vnuma.report.check.as_text import WIDTH, heads, lines
from vnuma.report.check.words import NAMED, headline, undecided_words
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
        "json": lambda: as_json.as_json(result),
        "csv": lambda: as_csv.as_csv(result),
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
