"""A summary over runs for the terminal, with a forest plot of characters, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from vnuma.analysis.compare import Interval
from vnuma.analysis.figures import limits, p_words, percent, signed
from vnuma.analysis.pooling import FEWEST_RUNS, Heterogeneity, Pooled
from vnuma.analysis.verdict import Label, Verdict
from vnuma.domain.vm.plain_text import counted, filled, listed
from vnuma.domain.vm.provenance import banner
from vnuma.report.comparison.pool import Pool
from vnuma.report.model.words import direction, unseen_states, verdict_words

WIDTH = 80
PLOT = 27
"""Width of the plot in characters."""
DIFFERS = 0.05
CAUTION = (
    "Each VM of a run counts once, whatever its blocks. The summary speaks of runs like these: it holds only "
    "as far as their hosts and builds stand for yours."
)


def as_text(found: Pool) -> str:
    """What was pooled, a part per arm with its forest plot, and finally the caution."""
    parts = [banner(unit.run.simulated) for unit in found.units if unit.run.simulated][:1]
    parts.append("\n".join(map(_wrap, _heading(found))))
    parts += ["\n".join(_arm(found, arm)) for arm in found.arms]
    return "\n\n".join([*parts, _wrap(CAUTION)]) + "\n"


def _heading(found: Pool) -> Iterator[str]:
    runs = counted(len({unit.run.run.id for unit in found.units}), "run")
    yield (
        f"{counted(len(found.counted), 'VM')} of {runs}, "
        f"{found.measure.name}, {direction(found.measure)}; differences from {found.reference}"
    )
    for unit in found.units:
        if unit.left_out:
            yield f"Left out    {unit.name}: {unit.left_out}"
    for name, values in found.varies.items():
        said = "; ".join(f"{value} ({listed(names)})" for value, names in values.items())
        yield f"Varies      {name}: {said}"
    if not found.varies:
        yield "Varies      nothing known: this is one environment, run again"


def _arm(found: Pool, arm: Pooled) -> Iterator[str]:
    yield _wrap(f"{arm.arm}: {summary(found, arm)}")
    rows = [
        (unit.name, one.contrast.ratio, _own(one.contrast.inference))
        for unit in found.counted
        if (one := unit.arm(arm.arm))
    ]
    if arm.verdict is not None:
        rows.append((f"mean of {arm.runs}", arm.verdict.ratio, arm.verdict.interval))
        rows.append(("one more run", None, arm.prediction))
    shown = [(name, ratio, interval) for name, ratio, interval in rows if interval is not None]
    if not shown:
        return
    low = min(0.0, *(percent(interval.low) for _, _, interval in shown))
    high = max(0.0, *(percent(interval.high) for _, _, interval in shown))
    longest = max(len(name) for name, _, _ in shown)
    for name, ratio, interval in shown:
        figures = f"{signed(ratio)} " if ratio is not None else ""
        yield f"  {name:<{longest}}  {_line(ratio, interval, low, high)}  {figures}({limits(interval, 1)})"
    yield f"  {'':<{longest}}  {f'{low:.1f}%':<{PLOT // 2}}{f'{high:.1f}%':>{PLOT - PLOT // 2}}"


def _own(inference: Any) -> Interval | None:
    return None if inference is None else inference.unadjusted


def _line(ratio: float | None, interval: Interval, low: float, high: float) -> str:
    """`|` is no difference, `o` the estimate."""

    def place(value: float) -> int:
        return round((value - low) / ((high - low) or 1.0) * (PLOT - 1))

    marks = [" "] * PLOT
    for at in range(place(percent(interval.low)), place(percent(interval.high)) + 1):
        marks[at] = "-"
    marks[place(0.0)] = "|"
    if ratio is not None:
        marks[place(percent(ratio))] = "o"
    return "".join(marks)


def summary(found: Pool, arm: Pooled) -> str:
    """The verdict over runs, whether they agree, and where a further one would lie."""
    words = agreement(found, arm)
    own = [one.verdict for unit in found.counted if (one := unit.arm(arm.arm))]
    hidden = f" {unseen_states(own)}".rstrip()
    if arm.verdict is None or arm.prediction is None:
        return f"no summary, {arm.runs} of {FEWEST_RUNS} VMs with enough boots; {words}.{hidden}"
    return (
        f"over runs {verdict_words(arm.verdict)}; {words}; {scatter(arm.heterogeneity, arm.runs)}; "
        f"one more run: {limits(arm.prediction, 1)}%.{'' if arm.verdict.unseen is not None else hidden}"
    )


def agreement(found: Pool, arm: Pooled) -> str:
    """As in "slower in all 4", or "slower in 3, faster in 1: they contradict each other"."""
    counts = Counter(one.verdict.label for unit in found.counted if (one := unit.arm(arm.arm)))
    if not counts:
        return "in no run decided"
    if len(counts) == 1:
        ((word, number),) = counts.items()
        return f"each VM {word}" if number == 1 else f"{word} in all {number}"
    text = ", ".join(f"{word} in {number}" for word, number in counts.most_common())
    clash = counts[Label.SLOWER] and counts[Label.FASTER]
    return f"{text}: they contradict each other, and no single answer holds" if clash else text


def scatter(found: Heterogeneity | None, runs: int) -> str:
    """Whether the runs differ by more than their own errors explain."""
    if found is None:
        return "whether runs differ is not evaluated, one does not scatter"
    p = p_words(found.p)
    if found.p < DIFFERS:
        return (
            f"runs differ by more than their own errors explain ({p}, SD between runs {found.sd * 100:.2f}%)"
        )
    return f"no difference between runs was found ({p}), which {runs} runs may miss"


def as_json(found: Pool) -> str:
    """One document: unrounded, null for unknown values."""
    document = {
        "schema": "vnuma/pool/1",
        "simulated": any(unit.run.simulated for unit in found.units),
        "caution": CAUTION,
        "reference": found.reference,
        "metric": found.measure.name,
        "unit": found.measure.unit,
        "better": found.measure.better,
        "varies": found.varies,
        "units": [
            {"run": unit.run.run.name, "vm": unit.vm.name, "left_out": unit.left_out or None}
            for unit in found.units
        ],
        "arms": [_pooled(found, arm) for arm in found.arms],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _pooled(found: Pool, arm: Pooled) -> dict[str, Any]:
    verdict, seen = arm.verdict, arm.heterogeneity
    own = [(unit, one) for unit in found.counted if (one := unit.arm(arm.arm))]
    return {
        "arm": arm.arm,
        "runs": arm.runs,
        "ratio": verdict.ratio if verdict else None,
        "interval_95": _limits(verdict.interval if verdict else None),
        "verdict": str(verdict.label) if verdict else None,
        "withheld": str(verdict.withheld) if verdict and verdict.withheld else None,
        "boots": sum(one.contrast.boots for _, one in own),
        **_boots(verdict),
        "prediction_95": _limits(arm.prediction),
        "between_sd": seen.sd if seen else None,
        "between_p": seen.p if seen else None,
        "reason": None if verdict else f"fewer than {FEWEST_RUNS} VMs with enough boots",
        "agreement": agreement(found, arm),
        "each": [
            {
                "run": unit.run.run.name,
                "vm": unit.vm.name,
                "ratio": one.contrast.ratio,
                "unadjusted_95": _limits(_own(one.contrast.inference)),
                "boots": one.contrast.boots,
                "verdict": str(one.verdict.label),
                **_boots(one.verdict),
            }
            for unit, one in own
        ],
    }


def _boots(verdict: Verdict | None) -> dict[str, Any]:
    """What single boots show or cannot show, with the names of `vnuma results`."""
    return {
        "unseen_share": verdict.unseen if verdict else None,
        "noticeable_shift": verdict.noticeable if verdict else None,
        "boots_apart": list(verdict.odd_boots) if verdict else [],
        "reference_boots_apart": list(verdict.reference_odd_boots) if verdict else [],
        "ratio_of_others": verdict.others if verdict else None,
    }


def _limits(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _wrap(text: str) -> str:
    return filled(text, WIDTH, then="  ")
