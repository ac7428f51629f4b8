"""Two runs: what must match, what else differs and what changed, as text and as JSON; a pipeline's condition.

`--fail-if 'slower>2%'` is a condition on every arm's gap to the reference, decided by its interval."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from vnuma.analysis.between_runs import ALPHA, LOOKED_AT_ALPHA, Change, boot_values, changes, clocks_of
from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT, ControlCheck
from vnuma.analysis.records import Measure
from vnuma.analysis.result import Analysis
from vnuma.analysis.stopping import FIRST_LOOK
from vnuma.analysis.verdict import Label, Rules, Verdict, Withheld, rules_for
from vnuma.errors import InputError, UsageError
from vnuma.report.model.configuration import configuration
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import differences_words, direction, verdict_words
from vnuma.store.rows import Vm
from vnuma.words.plain_text import counted, filled, listed
from vnuma.words.provenance import banner

_MUST_GROUPS = frozenset({"SQL Server", "Dataset", "Client"})
_MUST_OF_VM = frozenset({"Guest", "Memory"})
_NEVER_SHOWN = frozenset({"Product and study", "VM before the run"})
"""Always differs (name, path, dates) or is set by the arms."""
_MEASURED = frozenset({"Timed executions", "Time of a cell"})
"""The run's own results, which always differ."""
_SURROUNDINGS_OF_VM = frozenset({"Hardware version", *_MUST_OF_VM})


@dataclass(frozen=True)
class Difference:
    """One difference; `key` is the value for --allow, None where it may differ."""

    key: str | None
    name: str
    before: str
    after: str

    @property
    def of_study(self) -> bool:
        """Whether it applies to every VM of the run."""
        return (self.key or "").startswith(("study.", "arm."))

    @property
    def words(self) -> str:
        """As in "SQL Server, Version: 15.0.1 -> 15.0.2"."""
        return f"{self.name}: {self.before} -> {self.after}"


def differences(before: LoadedRun, one: Vm, after: LoadedRun, other: Vm) -> list[Difference]:
    """All differences between two runs' VMs, those that must match first."""
    found = [*_study(before, after), *_configuration(before, one, after, other)]
    return sorted(found, key=lambda item: item.key is None)


def surroundings(run: LoadedRun, vm: Vm) -> Iterator[tuple[str, str]]:
    """Name and value of everything that may affect a result: host, hardware, releases and settings."""
    for group, pairs in configuration(run, vm):
        for name, value in pairs:
            of_vm = group == "VM before the run" and name in _SURROUNDINGS_OF_VM
            if of_vm or group not in _NEVER_SHOWN | _MEASURED:
                yield f"{group}, {name}", value


def _study(before: LoadedRun, after: LoadedRun) -> Iterator[Difference]:
    now = _declared(after)
    for name, was in _declared(before).items():
        if was != now[name]:
            yield Difference(f"study.{name}", f"Study, {name}", was, now[name])
    for label in before.study.labels:
        if label in after.study.labels:
            one, other = _arm(before, label), _arm(after, label)
            if one != other:
                yield Difference(f"arm.{_key(label)}", f"Arm {label}", one, other)


def _declared(run: LoadedRun) -> dict[str, str]:
    study, work = run.study, run.study.workload
    measure = run.result.design.measure(work.forms[0])
    return {
        "source": f"the lab, scenario {run.simulated}" if run.simulated else "hardware",
        "workload": work.name,
        "metric": f"{measure.name}, {measure.unit}, {direction(measure)}",
        "form": work.forms[0],
        "sizes": ", ".join(map(str, work.sizes)),
        "iterations": f"{study.design.iterations} after {study.design.warmups} warm-ups",
        "vcpus": str(study.vcpus),
        "reference": study.reference,
    }


def _arm(run: LoadedRun, label: str) -> str:
    """An arm's settings, without those that no arm of the study sets."""
    values = run.study.arm(label).model_dump(mode="json", exclude_defaults=True, exclude={"name", "label"})
    return ", ".join(f"{name} {value}" for name, value in sorted(values.items()))


def _configuration(before: LoadedRun, one: Vm, after: LoadedRun, other: Vm) -> Iterator[Difference]:
    theirs = {group: dict(pairs) for group, pairs in configuration(after, other)}
    for group, pairs in configuration(before, one):
        for name, value in pairs:
            now = theirs.get(group, {}).get(name, "not known")
            must = group in _MUST_GROUPS or (group == "VM before the run" and name in _MUST_OF_VM)
            if value != now and (must or group not in _NEVER_SHOWN | _MEASURED):
                key = f"{_key(group)}.{_key(name)}" if must else None
                yield Difference(key, f"{group}, {name}", value, now)


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


@dataclass(frozen=True)
class Pair:
    """One VM in both runs, with what differs and what changed over the sizes that both have."""

    before: Vm
    after: Vm
    sizes: tuple[int, ...]
    differ: tuple[Difference, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Comparison:
    """Runs before and after a change, as loaded: one of each, or repetitions."""

    before: tuple[LoadedRun, ...]
    after: tuple[LoadedRun, ...]
    pairs: tuple[Pair, ...]

    @property
    def runs(self) -> tuple[LoadedRun, ...]:
        """All of them."""
        return (*self.before, *self.after)

    @property
    def names(self) -> tuple[str, str]:
        """Those before and those after the change."""
        return listed([run.label for run in self.before]), listed([run.label for run in self.after])

    @property
    def measure(self) -> Measure:
        """What was compared."""
        return self.before[0].result.design.measure(self.before[0].study.workload.forms[0])


def compare_runs(
    before: Sequence[LoadedRun],
    after: Sequence[LoadedRun],
    allowed: Collection[str] = (),
    twins: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare runs before and after a change. Raises InputError with everything that must match and does not.

    What is `allowed` may differ between the sides; repetitions on one side must match. `twins` names the VMs
    to compare: one of the first run before -> one of the first run after.
    """
    known = [run.identity for run in (*before, *after)]
    for run in (*before, *after):
        if known.count(run.identity) > 1:
            raise InputError(
                f"{run.label} cannot be compared with itself.", fix="vnuma status lists the runs."
            )
    first, then = before[0], after[0]
    vms = _named(first, then, twins) if twins else _vms(first, then)
    _refuse_unmeasured(first, [one for one, _ in vms])
    _refuse_unmeasured(then, [other for _, other in vms])
    differ = [differences(first, one, then, other) for one, other in vms]
    must = [
        (other.name if len(vms) > 1 else "", item)
        for (_, other), items in zip(vms, differ, strict=True)
        for item in items
        if item.key
    ]
    _refuse(first, then, [(vm, item) for vm, item in must if item.key not in allowed])
    refuse_idle(allowed, {item.key for _, item in must if item.key})
    return Comparison(
        tuple(before),
        tuple(after),
        tuple(
            _compared_pair(
                [(run, _again(first, one, run)) for run in before],
                [(run, _again(then, other, run)) for run in after],
                tuple(items),
            )
            for (one, other), items in zip(vms, differ, strict=True)
        ),
    )


def _again(first: LoadedRun, vm: Vm, run: LoadedRun) -> Vm:
    """The VM of a further run on the same side of the change, which must match."""
    if run is first:
        return vm
    found = run.vm(vm.name) or (run.vms[0] if len(run.vms) == len(first.vms) == 1 else None)
    if found is None:
        raise InputError(f"{run.label} has no VM {vm.name}.", fix="Leave this run out.")
    _refuse_unmeasured(run, [found])
    broken = [item.words for item in differences(first, vm, run, found) if item.key]
    if broken:
        raise InputError(
            f"{first.label} and {run.label} are on one side of the change and differ: {'; '.join(broken)}.",
            fix="Name only runs that repeat each other on one side.",
        )
    return found


def _vms(before: LoadedRun, after: LoadedRun) -> list[tuple[Vm, Vm]]:
    """VMs of the same name; if each run has one VM, those two."""
    if len(before.vms) == len(after.vms) == 1:
        return [(before.vms[0], after.vms[0])]
    pairs = [(vm, twin) for vm in before.vms if (twin := after.vm(vm.name))]
    if not pairs:
        names = [", ".join(vm.name for vm in run.vms) or "no VM" for run in (before, after)]
        raise InputError(
            f"{before.run.name} ({names[0]}) and {after.run.name} ({names[1]}) have no VM in common.",
            fix="Say which VM stands for which: --vm BEFORE=AFTER.",
        )
    return pairs


def _named(before: LoadedRun, after: LoadedRun, twins: Mapping[str, str]) -> list[tuple[Vm, Vm]]:
    """The VMs that the user pairs."""
    ours, theirs = ({vm.name: vm for vm in run.vms} for run in (before, after))
    for run, known, names in ((before, ours, twins.keys()), (after, theirs, twins.values())):
        strangers = [name for name in names if name not in known]
        if strangers:
            raise InputError(
                f"{run.run.name} has no VM {', '.join(strangers)}.", fix=f"It has {', '.join(known)}."
            )
    return [(ours[one], theirs[other]) for one, other in twins.items()]


def _refuse_unmeasured(run: LoadedRun, vms: Collection[Vm]) -> None:
    """Refuse a run at work that has measured nothing of a VM: its server and dataset are not known yet."""
    nothing = [vm.name for vm in vms if not run.primary_of(vm).points]
    if nothing and not run.run.state.ended:
        raise InputError(
            f"{run.run.name} is {run.run.state} and has not measured {', '.join(nothing)} yet.",
            fix=f"Compare them when it has valid cells: vnuma status {run.run.name}",
        )


def refuse_idle(allowed: Collection[str], differing: Collection[str]) -> None:
    """Refuse an unused allowance: it is misspelt, or the expected change was not made."""
    idle = [key for key in allowed if key not in differing]
    if idle:
        raise InputError(
            f"--allow {', '.join(idle)}: nothing that must match differs under that name.",
            fix=f"These differ: {', '.join(sorted(differing))}." if differing else "Leave it out.",
        )


def _refuse(before: LoadedRun, after: LoadedRun, broken: list[tuple[str, Difference]]) -> None:
    """Raise InputError with every difference, and the VM if there are several."""
    if not broken:
        return
    lines = "\n".join(
        f"  {item.key}: {f'{vm}: ' if vm else ''}{item.before} -> {item.after}"
        for vm, item in dict.fromkeys(("" if item.of_study else vm, item) for vm, item in broken)
    )
    options = " ".join(f"--allow {key}" for key in dict.fromkeys(item.key for _, item in broken))
    raise InputError(
        f"{before.label} and {after.label} differ in what must match:\n{lines}",
        fix=f"If that is the change you study: vnuma compare {before.argument} {after.argument} {options}",
    )


def _compared_pair(
    before: Sequence[tuple[LoadedRun, Vm]],
    after: Sequence[tuple[LoadedRun, Vm]],
    differ: tuple[Difference, ...],
) -> Pair:
    (first, one), (then, other) = before[0], after[0]
    ours, theirs = first.study.workload.sizes, then.study.workload.sizes
    sizes = tuple(size for size in ours if size in theirs)
    arms = [label for label in first.study.labels if label in then.study.labels]
    if not sizes or not arms:
        what = "size" if not sizes else "arm"
        raise InputError(f"{first.label} and {then.label} have no {what} in common.")
    sides = [
        [(run.primary_of(vm), [run.study.workload.sizes.index(size) for size in sizes]) for run, vm in side]
        for side in (before, after)
    ]
    analyses = [analysis for side in sides for analysis, _ in side]
    was, now = (
        [
            {arm: boots.get(arm, {}) for arm in arms}
            for analysis, places in side
            for boots in [boot_values(analysis.points, places)]
        ]
        for side in sides
    )
    looked_at = any(run.study.design.stop == "decided" for run, _ in (*before, *after))
    going = Withheld.NOT_ENDED if any(run.partial for run, _ in (*before, *after)) else None
    found = changes(
        was,
        now,
        first.study.reference,
        _rules(
            first.result.design.equivalence,
            analyses,
            FIRST_LOOK if looked_at else MIN_BOOTS_FOR_VERDICT,
            going,
        ),
        clocks_of(
            ([(analysis.points, places) for analysis, places in side] for side in sides),
            printed=first.result.design.printed,
        ),
        LOOKED_AT_ALPHA if looked_at else ALPHA,
    )
    return Pair(one, other, sizes, differ, found)


def _rules(margin: float, analyses: Sequence[Analysis], least: int, going: Withheld | None) -> Rules:
    """What withholds a run's verdicts withholds those of the change; `going` if a run has not ended.

    Looks at a run whose arms leave hold together, its comparisons with another run do not.
    """
    checks = [analysis.positive_control for analysis in analyses]
    failed = (check for check in checks if isinstance(check, ControlCheck) and not check.passed)
    withheld = next((analysis.withheld for analysis in analyses if analysis.withheld), going)
    first = analyses[0]
    rules = rules_for(margin, withheld, next(failed, checks[0]), first.measure.better, first.replicate)
    return replace(rules, least=least)


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
    "Between runs, time is not randomised: an arm's own figures hold everything that differs. Verdicts are "
    "about its gap to the reference, which every run measured."
)
TWO_RUNS = (
    "Two runs cannot show how much an arm itself scatters from run to run. If that is 0.2 to 0.5%, 13 to 84% "
    "of unchanged pairs show a change: run A twice before B, then vnuma compare A A B --after B."
)


def caution(found: Comparison) -> str:
    """What the comparison cannot show."""
    return CAUTION if len(found.runs) > 2 else f"{CAUTION} {TWO_RUNS}"


def as_text(found: Comparison, condition: Condition | None, width: int = WIDTH) -> str:
    """One part per VM, and finally the caution."""
    parts = [banner(run.simulated) for run in found.runs if run.simulated][:1]
    for pair in found.pairs:
        sentences = _pair(found, pair, condition)
        parts.append("\n".join(filled(text, width, then=hanging) for text, hanging in sentences))
    parts += [f"{run.run.name} has not ended: its figures will change." for run in found.runs if run.partial]
    return "\n\n".join([*parts, filled(caution(found), width)]) + "\n"


def _pair(found: Comparison, pair: Pair, condition: Condition | None) -> Iterator[tuple[str, str]]:
    """Each sentence about a VM, with the indent of its further lines."""
    yield pair_answer(pair), ""
    yield f"{pair.after.name}: {' -> '.join(found.names)}, {what_words(found, pair)}", "  "
    broken = "; ".join(item.words for item in pair.differ if item.key)
    yield f"Must agree  {f'differs, as allowed: {broken}' if broken else 'equal'}", " " * 12
    other = "; ".join(item.words for item in pair.differ if not item.key)
    yield f"Differs     {other or 'in nothing else that is known'}", " " * 12
    longest = max(len(change.arm) for change in pair.changes)
    for change in pair.changes:
        words = "the reference"
        if change.gap:
            words = f"relative to the reference {judged_words(change.gap, condition)}"
        own = f"own figures {estimate_words(change.own)}, n = {change.before} and {change.after}"
        yield f"{change.arm:<{longest}}  {words}; {own}", " " * (longest + 2)


def pair_answer(pair: Pair) -> str:
    """Which gaps to the reference changed, which did not, and which nobody knows: the first sentence."""
    said: dict[str, list[str]] = {"changed": [], "unchanged": [], "not decided": []}
    for change in pair.changes:
        gap = change.gap
        if gap is None:
            continue
        if gap.withheld is None and gap.label in (Label.SLOWER, Label.FASTER):
            said["changed"].append(f"{change.arm} {gap.label}, {estimate_words(gap)}")
        elif gap.withheld is None and gap.label is Label.EQUIVALENT:
            said["unchanged"].append(change.arm)
        else:
            said["not decided"].append(change.arm)
    found = [f"{word}: {listed(arms)}" for word, arms in said.items() if arms]
    return f"Gap to the reference {'; '.join(found) or 'not comparable'}."


def what_words(found: Comparison, pair: Pair) -> str:
    """What was measured of a VM, at which sizes, and which direction is better."""
    sizes = ("over " if len(pair.sizes) > 1 else "at ") + listed([f"{size:,}" for size in pair.sizes])
    first, measure = found.before[0], found.measure
    return (
        f"{measure.name} in {measure.unit} {sizes} {first.result.design.size_word}, "
        f"form {first.study.workload.forms[0]}, "
        f"{direction(measure)}"
    )


def judged_words(verdict: Verdict, condition: Condition | None) -> str:
    """A verdict, and the condition's result."""
    state = condition.of(verdict) if condition else "not met"
    more = {"met": f"; FAILS {condition}", "not met": "", "not evaluated": f"; {condition} not evaluated"}
    return f"{verdict_words(verdict)}{more[state]}"


def estimate_words(verdict: Verdict) -> str:
    """An estimate with its interval."""
    return "not known" if verdict.ratio is None else differences_words([verdict])[0]


def states(found: Comparison, condition: Condition) -> Iterator[tuple[Pair, Change, State]]:
    """The condition on every arm of every VM except the reference."""
    for pair in found.pairs:
        for change in pair.changes:
            if change.gap is not None:
                yield pair, change, condition.of(change.gap)


def as_json(found: Comparison, condition: Condition | None) -> str:
    """One document: unrounded, null for unknown values."""
    measure = found.measure
    document = {
        "schema": "vnuma/comparison/3",
        "simulated": any(run.simulated for run in found.runs),
        "before": [run.run.name for run in found.before],
        "after": [run.run.name for run in found.after],
        "fail_if": None if condition is None else str(condition),
        "caution": caution(found),
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
