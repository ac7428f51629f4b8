"""A comparison for the terminal and as JSON.

`--fail-if 'slower>2%'` is a condition on every arm's gap to the reference, decided by its interval.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from vnuma.analysis.change_between_runs import Change
from vnuma.analysis.figures import decimals, limits, signed
from vnuma.analysis.verdict import Verdict
from vnuma.errors import UsageError
from vnuma.report.comparison.pair import Comparison, Pair
from vnuma.report.model.words import direction, verdict_words
from vnuma.words.plain_text import counted, filled, listed
from vnuma.words.provenance import banner

State = Literal["met", "not met", "not evaluated"]

_FORM = re.compile(r"\s*(slower|faster)\s*>\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


@dataclass(frozen=True)
class Condition:
    """`word` by more than `share` (0.02 is 2%): true when the whole 95% interval lies beyond."""

    word: Literal["slower", "faster"]
    share: float

    def __str__(self) -> str:
        return f"{self.word}>{self.share * 100:g}%"

    def of(self, verdict: Verdict | None) -> State:
        """Whether it is true for an arm's gap; not evaluated for the reference or without a verdict."""
        if verdict is None or verdict.withheld or verdict.interval is None or verdict.provisional:
            return "not evaluated"
        # Where lower is better, a worse figure is larger: the share refers to the figure itself.
        upward = (self.word == "slower") == (verdict.better == "lower")
        if upward:
            return "met" if verdict.interval.low > 1 + self.share else "not met"
        return "met" if verdict.interval.high < 1 - self.share else "not met"


def parse_condition(text: str) -> Condition:
    """Parse a condition as people write it. Raises UsageError."""
    found = _FORM.fullmatch(text)
    if found is None or not math.isfinite(float(found[2])):
        raise UsageError(f"'{text}' is not a condition.", fix="Use --fail-if 'slower>2%' or 'faster>2%'.")
    return Condition("slower" if found[1] == "slower" else "faster", float(found[2]) / 100)


WIDTH = 80
CAUTION = (
    "Between runs, time is not randomised: an arm's own figures hold everything that differs, and two runs "
    "cannot tell how much that is. Verdicts are about its gap to the reference, which both runs measured. If "
    "an arm itself scatters by 0.2 to 0.5% from run to run, 13 to 84% of unchanged pairs show a change: run "
    "A twice before B."
)


def as_text(found: Comparison, condition: Condition | None, width: int = WIDTH) -> str:
    """One part per VM, and finally the caution."""
    before, after = found.before, found.after
    parts = [banner(run.simulated) for run in (before, after) if run.simulated][:1]
    for pair in found.pairs:
        sentences = _pair(found, pair, condition)
        parts.append("\n".join(filled(text, width, then=hanging) for text, hanging in sentences))
    parts += [
        f"{run.run.name} is still going: its figures will change." for run in (before, after) if run.partial
    ]
    return "\n\n".join([*parts, filled(CAUTION, width)]) + "\n"


def _pair(found: Comparison, pair: Pair, condition: Condition | None) -> Iterator[tuple[str, str]]:
    """Each sentence about a VM, with the indent of its further lines."""
    runs = f"{found.before.label} -> {found.after.label}"
    yield f"{pair.after.name}: {runs}, {what_words(found, pair)}", "  "
    broken = "; ".join(item.words for item in pair.differ if item.key)
    yield f"Must agree  {f'differs, as allowed: {broken}' if broken else 'equal'}", " " * 12
    other = "; ".join(item.words for item in pair.differ if not item.key)
    yield f"Differs     {other or 'nothing else known'}", " " * 12
    longest = max(len(change.arm) for change in pair.changes)
    for change in pair.changes:
        words = gap_words(change.gap, condition)
        own = f"own figures {estimate_words(change.own)}, n = {change.before} and {change.after}"
        yield f"{change.arm:<{longest}}  {words}; {own}", " " * (longest + 2)


def what_words(found: Comparison, pair: Pair) -> str:
    """What was measured of a VM, at which sizes, and which direction is better."""
    sizes = ("over " if len(pair.sizes) > 1 else "at ") + listed([f"{size:,}" for size in pair.sizes])
    form = found.before.study.workload.forms[0]
    measure = found.before.result.design.measure(form)
    return (
        f"{measure.name} in {measure.unit} {sizes} {found.before.result.design.size_word}, form {form}, "
        f"{direction(measure)}"
    )


def gap_words(gap: Verdict | None, condition: Condition | None) -> str:
    """An arm's gap to the reference, and the condition's result."""
    if gap is None:
        return "the reference"
    return f"relative to the reference {judged_words(gap, condition)}"


def judged_words(verdict: Verdict, condition: Condition | None) -> str:
    """A verdict, and the condition's result."""
    return f"{verdict_words(verdict)}{_judged(verdict, condition)}"


def _judged(verdict: Verdict, condition: Condition | None) -> str:
    state = condition.of(verdict) if condition else "not met"
    return {"met": f"; FAILS {condition}", "not met": "", "not evaluated": f"; {condition} not evaluated"}[
        state
    ]


def estimate_words(verdict: Verdict) -> str:
    """An estimate with its interval."""
    if verdict.ratio is None:
        return "not known"
    if verdict.interval is None:
        return signed(verdict.ratio)
    places = decimals([verdict.interval], verdict.margin)
    return f"{signed(verdict.ratio, places)} ({limits(verdict.interval, places)})"


def states(found: Comparison, condition: Condition) -> Iterator[tuple[Pair, Change, State]]:
    """The condition on every arm of every VM except the reference."""
    for pair in found.pairs:
        for change in pair.changes:
            if change.gap is not None:
                yield pair, change, condition.of(change.gap)


def as_json(found: Comparison, condition: Condition | None) -> str:
    """One document: unrounded, null for unknown values."""
    runs = [found.before, found.after]
    measure = found.before.result.design.measure(found.before.study.workload.forms[0])
    document = {
        "schema": "vnuma/comparison/2",
        "simulated": any(run.simulated for run in runs),
        "before": found.before.run.name,
        "after": found.after.run.name,
        "fail_if": None if condition is None else str(condition),
        "caution": CAUTION,
        "metric": measure.name,
        "unit": measure.unit,
        "better": measure.better,
        "vms": [_vm(pair, condition) for pair in found.pairs],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _vm(pair: Pair, condition: Condition | None) -> dict[str, Any]:
    return {
        "before": pair.before.name,
        "after": pair.after.name,
        "sizes": list(pair.sizes),
        "differs": [
            {"must_agree": item.key, "name": item.name, "before": item.before, "after": item.after}
            for item in pair.differ
        ],
        "arms": [
            {
                "arm": change.arm,
                "boots_before": change.before,
                "boots_after": change.after,
                "gap": None if change.gap is None else _figures(change.gap),
                "own": _interval(change.own),
                "fail_if": None if condition is None else condition.of(change.gap),
            }
            for change in pair.changes
        ],
    }


def _figures(verdict: Verdict) -> dict[str, Any]:
    return {
        **_interval(verdict),
        "verdict": str(verdict.label),
        "withheld": None if verdict.withheld is None else str(verdict.withheld),
    }


def _interval(verdict: Verdict) -> dict[str, Any]:
    interval = verdict.interval
    return {
        "ratio": verdict.ratio,
        "interval_95": None if interval is None else [interval.low, interval.high],
        "reason": None if interval else f"too few boots ({counted(verdict.boots, 'boot')})",
    }
