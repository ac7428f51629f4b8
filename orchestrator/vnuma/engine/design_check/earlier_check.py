"""An earlier check to compare with: its JSON document, or a snapshot of the earlier estate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vnuma.checks.check_history import Earlier, Seen, earlier_of
from vnuma.checks.result import CheckResult
from vnuma.engine.design_check.check import CheckRequest, run_check
from vnuma.errors import InputError
from vnuma.estate import snapshot


def earlier(path: Path, asked: CheckRequest) -> Earlier:
    """What was found then. Of a snapshot, what today's rules find in the facts of then.

    Raises InputError for any other file.
    """
    document = snapshot.read_json(path)
    if not snapshot.is_snapshot(document):
        return earlier_of(document, path)
    estates = snapshot.from_document(document, path)
    result = run_check(estates, replace(asked, sql=None))
    found = {item.key: item.finding.name for vm in result.vms for item in vm.findings}
    sources = frozenset(estate.source for estate in estates)
    return Earlier(min(estate.read_at for estate in estates), found, sources)


def require_same_estate(result: CheckResult, then: Earlier, path: Path) -> None:
    """Raise InputError where the two have neither a source nor an object in common.

    An export has another file name every time, and VMs come and go: either is enough.
    """
    now = {source.name for source in result.sources}
    if not then.found or now & then.sources:
        return
    if any(Seen(result).knows(identity, name) for (_, _, identity), name in then.found.items()):
        return
    raise InputError(
        f"{path} is a check of a different estate: {', '.join(sorted(then.sources))}, not "
        f"{', '.join(sorted(now))}; they share no objects.",
        fix="Name an earlier check of this estate: --baseline FILE",
    )
