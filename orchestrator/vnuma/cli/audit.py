"""`vnuma audit`: every change that was made to a VM."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.cli.completion import run_names
from vnuma.cli.options import StoreOption
from vnuma.cli.screen import echo, say

if TYPE_CHECKING:
    from vnuma.store.audit import AuditLine


class AuditFormat(StrEnum):
    """What to print."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


def audit(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Only this run, such as quick.4, or `latest`.",
            autocompletion=run_names,
        ),
    ] = None,
    format_: Annotated[AuditFormat, typer.Option("--format", help="text, json or jsonl.")] = AuditFormat.TEXT,
    store: StoreOption = None,
) -> None:
    """Show who changed what on which VM, when, for which run and change ticket.

    The same lines are in a file beside the store, FILE.audit.jsonl.

    Examples: vnuma audit; vnuma audit quick.4; vnuma audit --format jsonl
    """
    from vnuma.engine.access.places import audit_file, store_url
    from vnuma.engine.lease.audit import as_json, audit_lines
    from vnuma.store.open import open_store

    opened = open_store(store_url(store))
    lines = audit_lines(opened, run)
    if format_ is AuditFormat.JSON:
        echo(json.dumps({"schema": "vnuma/audit/1", "changes": list(map(as_json, lines))}, indent=2))
        return
    if format_ is AuditFormat.JSONL:
        for line in lines:
            echo(json.dumps(as_json(line)))
        return
    for line in lines:
        say(_text(line))
    say(f"{len(lines)} lines; the same in {audit_file(opened.place)}" if lines else "No changes yet.")


def _text(line: AuditLine) -> str:
    from vnuma.engine.cell.shape import diff_text

    for_what = " ".join(filter(None, (line.run or "by hand", line.ticket)))
    head = f"{line.at:%Y-%m-%dT%H:%M:%SZ}  {line.who}  {line.vm}  {for_what}  {line.action}"
    edits = [
        f"    {edit['setting']}: {_value(diff_text(edit['before']))} -> {_value(diff_text(edit['after']))}"
        for edit in line.change
    ]
    return "\n".join([head, *edits, *([f"    {line.detail}"] if line.detail else [])])


def _value(value: object) -> str:
    return "none" if value in (None, "") else str(value)
