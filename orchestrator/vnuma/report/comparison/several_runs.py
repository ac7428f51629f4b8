"""Three runs or more of one study: which arms they agree about, as text and as JSON.

Refused where something must match and does not.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vnuma.analysis.between_runs import FEWEST_RUNS, Heterogeneity, Pooled, pool
from vnuma.analysis.checks import ControlCheck
from vnuma.analysis.compare import Interval
from vnuma.analysis.records import Measure
from vnuma.analysis.result import Analysis, ArmResult
from vnuma.analysis.verdict import Label, Rules, Verdict
from vnuma.analysis.wording import limits, p_words, signed
from vnuma.errors import InputError
from vnuma.report.comparison.two_runs import differences, refuse_idle, surroundings
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import direction, unseen_states, verdict_words
from vnuma.store.rows import Vm
from vnuma.words.plain_text import counted, filled, listed
from vnuma.words.provenance import banner

WIDTH = 80
DIFFERS = 0.05
CAUTION = (
    "Each VM of a run counts once, whatever its blocks. The summary speaks of runs like these: it holds only "
    "as far as their hosts and builds stand for yours."
)


@dataclass(frozen=True)
class Unit:
    """One VM of one run: the replicate. `left_out` says why it is not in the summary, or ""."""

    run: LoadedRun
    vm: Vm
    analysis: Analysis
    left_out: str

    @property
    def name(self) -> str:
        """As in "quick.1 sql16"."""
        return f"{self.run.label} {self.vm.name}"

    def arm(self, name: str) -> ArmResult | None:
        """The arm, if this VM has enough boots of it for a verdict."""
        found = next((arm for arm in self.analysis.arms if arm.arm == name), None)
        return found if found and not found.verdict.provisional else None


@dataclass(frozen=True)
class Pool:
    """`arms` in the order of the first study; `varies`: name -> value -> the units that have it."""

    units: tuple[Unit, ...]
    reference: str
    measure: Measure
    varies: dict[str, dict[str, list[str]]]
    arms: tuple[Pooled, ...]

    @property
    def counted(self) -> tuple[Unit, ...]:
        """The units of the summary."""
        return tuple(unit for unit in self.units if not unit.left_out)

    def of(self, arm: str) -> list[tuple[Unit, ArmResult]]:
        """Those of them that have enough boots of an arm, with it."""
        return [(unit, found) for unit in self.counted if (found := unit.arm(arm))]


def pool_runs(runs: Sequence[LoadedRun], allowed: Collection[str] = ()) -> Pool:
    """Summarise every arm over all VMs of these runs.

    Raises InputError for a run named twice, fewer than 3 VMs in all, and what must match and does not.
    """
    names = [run.run.name for run in runs]
    known = [run.identity for run in runs]
    twice = sorted({run.run.name for run in runs if known.count(run.identity) > 1})
    if twice:
        raise InputError(
            f"{', '.join(twice)} is named twice: it is one run.", fix="vnuma status lists the runs."
        )
    units = [_unit(run, vm) for run in runs for vm in run.vms]
    if len(units) < FEWEST_RUNS:
        raise InputError(
            f"{counted(len(units), 'VM')} in all: a summary over runs needs {FEWEST_RUNS}.",
            fix=f"Two runs side by side: vnuma compare {' '.join([*names, 'RUN'][:2])}",
        )
    _refuse(units, allowed)
    first = units[0].analysis
    used = [unit for unit in units if not unit.left_out]
    design = units[0].run.result.design
    failed = any(
        isinstance(unit.analysis.positive_control, ControlCheck) and not unit.analysis.positive_control.passed
        for unit in used
    )
    rules = Rules(design.equivalence, None, failed, better=first.measure.better, replicate=first.replicate)
    held = {arm.arm: [found for unit in used if (found := unit.arm(arm.arm))] for arm in first.arms}
    family = max(1, sum(len(found) >= FEWEST_RUNS for found in held.values()))
    arms = tuple(pool(arm, [one.contrast for one in found], family, rules) for arm, found in held.items())
    return Pool(tuple(units), design.reference, first.measure, _varies(units), arms)


def _unit(run: LoadedRun, vm: Vm) -> Unit:
    analysis = run.primary_of(vm)
    why = f"its verdicts are withheld ({analysis.withheld})" if analysis.withheld else ""
    if not why and all(arm.verdict.provisional for arm in analysis.arms):
        why = "no arm has the boots that a verdict needs"
    return Unit(run, vm, analysis, why)


def _refuse(units: Sequence[Unit], allowed: Collection[str]) -> None:
    first = units[0]
    differ = {
        (unit.name, item.key): item
        for unit in units[1:]
        for item in differences(first.run, first.vm, unit.run, unit.vm)
        if item.key
    }
    refuse_idle(allowed, {key for _, key in differ})
    broken = {at: item for at, item in differ.items() if at[1] not in allowed or at[1] == "study.sizes"}
    if broken:
        lines = "\n".join(
            f"  {name}: {item.key}: {item.before} -> {item.after}" for (name, _), item in broken.items()
        )
        keys = dict.fromkeys(key for _, key in broken if key and key != "study.sizes")
        raise InputError(
            f"These differ from {first.name} in what must agree:\n{lines}",
            fix="Accept what you mean: " + " ".join(f"--allow {key}" for key in keys)
            if keys
            else "Leave out runs of other sizes.",
        )


def _varies(units: Sequence[Unit]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for unit in units:
        for name, value in surroundings(unit.run, unit.vm):
            found[name][value].append(unit.name)
    return {name: dict(values) for name, values in found.items() if len(values) > 1}


def as_text(found: Pool) -> str:
    """What was summarised, a part per arm with a line per VM, and finally the caution."""
    parts = [banner(unit.run.simulated) for unit in found.units if unit.run.simulated][:1]
    parts.append("\n".join(map(_wrap, _heading(found))))
    parts += ["\n".join(_arm(found, arm)) for arm in found.arms]
    return "\n\n".join([*parts, _wrap(CAUTION)]) + "\n"


def _heading(found: Pool) -> Iterator[str]:
    runs = counted(len({unit.run.identity for unit in found.units}), "run")
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
        # A run's own interval: for the arm alone, or of its last look where looks are repeated.
        (unit.name, one.contrast.ratio, (error.unadjusted or error.interval) if error else None)
        for unit, one in found.of(arm.arm)
        for error in [one.contrast.inference]
    ]
    if arm.verdict is not None:
        rows.append((f"mean of {arm.runs}", arm.verdict.ratio, arm.verdict.interval))
        rows.append(("one more run", None, arm.prediction))
    shown = [(name, ratio, interval) for name, ratio, interval in rows if interval is not None]
    if not shown:
        return
    longest = max(len(name) for name, _, _ in shown)
    for name, ratio, interval in shown:
        figures = f"{signed(ratio)} " if ratio is not None else ""
        yield f"  {name:<{longest}}  {figures}({limits(interval, 1)})"


def summary(found: Pool, arm: Pooled) -> str:
    """The verdict over runs, whether they agree, and where a further one would lie."""
    words = agreement(found, arm)
    hidden = f" {unseen_states([one.verdict for _, one in found.of(arm.arm)])}".rstrip()
    if arm.verdict is None or arm.prediction is None:
        return f"no summary, {arm.runs} of {FEWEST_RUNS} VMs with enough boots; {words}.{hidden}"
    return (
        f"over runs {verdict_words(arm.verdict)}; {words}; {scatter(arm.heterogeneity, arm.runs)}; "
        f"one more run: {limits(arm.prediction, 1)}%.{'' if arm.verdict.unseen is not None else hidden}"
    )


def agreement(found: Pool, arm: Pooled) -> str:
    """As in "slower in all 4", or "slower in 3, faster in 1: they contradict each other"."""
    counts = Counter(one.verdict.label for _, one in found.of(arm.arm))
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
    own = found.of(arm.arm)
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
                "unadjusted_95": _limits(inference.unadjusted if inference else None),
                "boots": one.contrast.boots,
                "verdict": str(one.verdict.label),
                **_boots(one.verdict),
            }
            for unit, one in own
            for inference in [one.contrast.inference]
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
