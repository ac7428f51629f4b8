"""An estate's drift as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from vnuma import __version__
from vnuma.checks.check_history import History, StandingFinding
from vnuma.words.plain_text import counted
from vnuma.words.provenance import in_json

SCHEMA = "vnuma/check-history/1"
MOST = 40
"""Most findings of one kind shown on the terminal; the rest is counted."""


def lines(history: History) -> Iterator[str]:
    """One source on the terminal: new, gone, then unchanged findings, each worst first."""
    counts = ", ".join(f"{len(findings):,} {state}" for state, findings in history.by_state.items())
    first, last = _day(history.checks[0].read_at), _day(history.until)
    days = f"on {first}" if first == last else f"from {first} to {last}"
    yield f"{history.source}: {counted(len(history.checks), 'check')} {days}"
    first_check = len(history.checks) == 1
    if first_check:
        yield f"the first check: {counted(len(history.unchanged), 'finding')}"
    else:
        yield f"since {history.since:%Y-%m-%d %H:%M} UTC: {counts}"
    for word, findings in history.by_state.items():
        state = "found" if first_check else word
        for item in findings[:MOST]:
            where = f"{item.severity:6}{item.rule:4} {item.kind} {item.name}"
            yield f"{state:10}{where}  {how_long(item, history)}"
        if len(findings) > MOST:
            yield f"{state:10}and {len(findings) - MOST:,} more (--format json has all)"


def how_long(item: StandingFinding, history: History) -> str:
    """How long a finding was present; "at least" if the first check found it already."""
    least = "at least " if history.is_from_the_start(item) else ""
    if item.gone is not None:
        return f"for {_days(item, item.gone, least) or 'less than a day'}, until {_day(item.gone)}"
    unseen = "" if history.was_seen_last(item) else f", not evaluated since {_day(item.last)}"
    days = _days(item, history.until, least)
    return f"since {_day(item.first)}{f', {days}' if days else ''}{unseen}"


def _days(item: StandingFinding, end: datetime, least: str) -> str:
    """Empty for less than a day."""
    days = (end - item.first).days
    return f"{least}{counted(days, 'day')}" if days else ""


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d}"


def as_json(histories: Sequence[History]) -> str:
    """Every source with its checks and findings; times are UTC in ISO 8601."""
    document = {
        "schema": SCHEMA,
        "vnuma": __version__,
        **in_json(next((one.simulated for one in histories if one.simulated), None)),
        "sources": [_source(one) for one in histories],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _source(history: History) -> dict[str, Any]:
    return {
        "name": history.source,
        "since": history.since.isoformat(),
        "checks": [
            {"read_at": check.read_at.isoformat(), "vms": check.vms, "vnuma": check.product_version}
            for check in history.checks
        ],
        "findings": [
            _finding(item, state, history) for state, items in history.by_state.items() for item in items
        ],
    }


def _finding(item: StandingFinding, state: str, history: History) -> dict[str, Any]:
    return {
        "state": state,
        "rule": item.rule,
        "severity": item.severity,
        "object": {"kind": item.kind, "name": item.name, "key": item.key},
        "first_found": item.first.isoformat(),
        "from_the_first_check": history.is_from_the_start(item),
        "last_found": item.last.isoformat(),
        "gone": item.gone.isoformat() if item.gone else None,
    }
