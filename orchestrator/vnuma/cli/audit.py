"""`vnuma audit`: every change made to a VM, and whether the log is unaltered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vnuma.cli.options import StoreOption, TextOrJsonOption, opened_store, run_names
from vnuma.cli.screen import echo, echo_json, say
from vnuma.cli.verb import ShowsByDefault, subcommand
from vnuma.words.plain_text import counted

if TYPE_CHECKING:
    from vnuma.store.audit import AuditLine


app = typer.Typer(
    cls=ShowsByDefault,
    help="Show who changed what on which VM; `verify` checks that nobody altered the log.",
    rich_markup_mode=None,
)


@subcommand(app)
def show(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="Only this run, such as quick.4, or `latest`.", autocompletion=run_names
        ),
    ] = None,
    format_: Annotated[
        Literal["text", "json", "jsonl"], typer.Option("--format", help="text, json or jsonl.")
    ] = "text",
    store: StoreOption = None,
) -> None:
    """Show who changed what on which VM, when, for which run and change ticket.

    The same lines are in a file next to the store, FILE.audit.jsonl; with PostgreSQL, on the machine that
    made the changes.

    Examples: vnuma audit; vnuma audit quick.4; vnuma audit --format jsonl
    """
    from vnuma.engine.access.places import audit_file
    from vnuma.engine.audit.log import as_json, audit_lines

    opened = opened_store(store)
    lines = audit_lines(opened, run)
    if format_ == "json":
        echo_json({"schema": "vnuma/audit/1", "changes": list(map(as_json, lines))})
        return
    if format_ == "jsonl":
        for line in lines:
            echo(json.dumps(as_json(line)))
        return
    for line in lines:
        say(_text(line))
    whose = "the same in" if opened.place.is_sqlite else "those made on this machine also in"
    say(f"{counted(len(lines), 'line')}; {whose} {audit_file(opened.place)}" if lines else "No changes yet.")


@subcommand(app)
def verify(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="An audit log; by default those of the store, compared with it."),
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option(
            "--hash",
            metavar="SHA256",
            help="Hash of a line that you kept elsewhere; the log must contain it.",
        ),
    ] = None,
    format_: TextOrJsonOption = "text",
    store: StoreOption = None,
) -> None:
    """Check that no line of the audit log was changed, inserted or removed.

    Each line has the SHA-256 of the line before it. A file alone cannot show that lines are missing at its
    end, or that it was rewritten from some line on: the store and --hash show that. Exit code 10 if
    it was altered.

    Examples: vnuma audit verify; vnuma audit verify old.audit.jsonl --hash 5891b5b5...
    """
    from vnuma.engine.audit.log import verify_file, verify_store

    found = verify_file(file, expected) if file else verify_store(opened_store(store), expected)
    last, problem = next(iter(found.hashes[-1:]), None), found.problem and found.problem.what
    if format_ == "json":
        told = {"file": str(found.path), "lines": len(found.hashes), "last_hash": last, "problem": problem}
        document: dict[str, object] = {"schema": "vnuma/audit-verify/1", "intact": problem is None}
        document |= {"problem": problem, "files": [told] if found.path.exists() else []}
        counts = {"store": found.only_in_store, "file": found.only_in_file}
        document |= {f"lines_only_in_{k}": None if v is None else len(v) for k, v in counts.items()}
        echo_json(document)
    else:
        lines = f"{counted(len(found.hashes), 'line')}; the last has hash {last}"
        none = f"Checked   {found.path}: no line in it" if found.path.exists() else "No audit log yet."
        say(f"Checked   {found.path}: {lines}" if last else none)
        if found.earlier:
            say(f"Note      {counted(found.earlier, 'line')} are older than this store.")
        if found.only_in_store is not None and not problem:
            say("Store     has the same lines of this home.")
    if found.problem:
        raise found.problem


_OUTCOMES = {"failed": "failed", "unknown": "may have been made", "intended": "may have been made"}


def _text(line: AuditLine) -> str:
    from vnuma.engine.cell.shape import diff_text

    for_what = " ".join(filter(None, (line.run or "by hand", line.ticket)))
    outcome = f"  {_OUTCOMES[line.outcome]}" if line.outcome in _OUTCOMES else ""
    head = f"{line.at:%Y-%m-%dT%H:%M:%SZ}  {line.who}  {line.vm}  {for_what}  {line.action}{outcome}"
    edits = [
        f"    {edit['setting']}: {_value(diff_text(edit['before']))} -> {_value(diff_text(edit['after']))}"
        for edit in line.change
    ]
    return "\n".join([head, *edits, *([f"    {line.detail}"] if line.detail else [])])


def _value(value: object) -> str:
    return "none" if value in (None, "") else str(value)
