"""An earlier check to compare with: its JSON document, or a snapshot of the estate of then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vnuma.engine.check import Asked, run_check
from vnuma.estate import snapshot
from vnuma.estate.earlier import Earlier, from_document


def earlier(path: Path, asked: Asked) -> Earlier:
    """What was found then. Of a snapshot, what today's rules find in the facts of then.

    Raises InputError for any other file.
    """
    document = snapshot.read_json(path)
    if not snapshot.is_snapshot(document):
        return from_document(document, path)
    estates = snapshot.from_document(document, path)
    result = run_check(estates, replace(asked, sql=None))
    found = {item.key: item.finding.name for vm in result.vms for item in vm.findings}
    return Earlier(min(estate.read_at for estate in estates), found)
