"""The mark of a run on its VM (extraConfig `vnuma.run`): its text, whose it is, and the note for people."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.context import holder
from vnuma.errors import VmHeld
from vnuma.store.rows import Run
from vnuma.store.types import iso
from vnuma.vsphere import run_mark


def refuse_if_marked(vm: VmFacts, run: Run | None = None) -> None:
    """Raise VmHeld if another run has marked the VM, with its holder and time."""
    mark = foreign_mark(vm.lease, run)
    if mark:
        raise VmHeld(
            f"{vm.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}.",
            fix=f"Wait, or ask them to: vnuma stop {mark['run']}. Nothing was changed.",
        )


def marking(run: Run, facts: VmFacts) -> Edit:
    """The mark as a change; a VM that this run has marked already is marked again."""
    return Edit(run_mark.LEASE_KEY, run.name if facts.lease else None, run.name)


def mark_text(run: Run, token: int) -> str:
    """The mark on a VM under study: extraConfig `vnuma.run`."""
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    mark = {"run": run.name, "created": iso(run.created_at), "token": token, "holder": holder()}
    return json.dumps(mark | {"since": since}, sort_keys=True)


def note_text(run: Run) -> str:
    """The same for people, shown as a custom attribute in the vSphere Client."""
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"under study by {holder()}, run {run.name}, since {since}"


def foreign_mark(text: str | None, run: Run | None) -> dict[str, str] | None:
    """The mark if it is another run's. Run names do not identify one: each store has its own quick.1."""
    mark = parse_mark(text)
    ours = mark and run and (mark["run"], mark.get("created")) == (run.name, iso(run.created_at))
    return None if ours else mark


def parse_mark(text: str | None) -> dict[str, str] | None:
    """Parse a mark. Any other text counts as the mark of another run."""
    if not text:
        return None
    unknown = {"run": "an unknown run", "holder": "somebody", "since": "an unknown time"}
    try:
        mark = json.loads(text)
    except ValueError:
        return unknown
    return unknown | {key: str(value) for key, value in mark.items()} if isinstance(mark, dict) else unknown
