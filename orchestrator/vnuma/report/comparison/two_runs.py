"""Two runs: what must match, what else differs and what changed, as text and as JSON; a pipeline's condition.

`--fail-if 'slower>2%'` is a condition on every arm's gap to the reference, decided by its interval."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vnuma.analysis.between_runs import Change, boot_values, changes, clocks_of
from vnuma.analysis.checks import ControlCheck
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Rules, Verdict, rules_for
from vnuma.analysis.wording import decimals, limits, signed
from vnuma.errors import InputError, UsageError
from vnuma.report.model.configuration import configuration
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import direction, verdict_words
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
    """Two runs; `before` and `after` as loaded."""

    before: LoadedRun
    after: LoadedRun
    pairs: tuple[Pair, ...]


def compare_runs(
    before: LoadedRun, after: LoadedRun, allowed: Collection[str] = (), twins: Mapping[str, str] | None = None
) -> Comparison:
    """Compare two runs. Raises InputError with everything that must match and does not, unless allowed.

    `twins` names the VMs to compare: one of the first run -> one of the second.
    """
    if before.identity == after.identity:
        raise InputError(
            f"{before.label} cannot be compared with itself.", fix="vnuma status lists the runs."
        )
    vms = _named(before, after, twins) if twins else _vms(before, after)
    _refuse_unmeasured(before, [one for one, _ in vms])
    _refuse_unmeasured(after, [other for _, other in vms])
    differ = [differences(before, one, after, other) for one, other in vms]
    must = [
        (other.name if len(vms) > 1 else "", item)
        for (_, other), items in zip(vms, differ, strict=True)
        for item in items
        if item.key
    ]
    _refuse(before, after, [(vm, item) for vm, item in must if item.key not in allowed])
    refuse_idle(allowed, {item.key for _, item in must if item.key})
    return Comparison(
        before,
        after,
        tuple(
            _compared_pair(before, one, after, other, tuple(items))
            for (one, other), items in zip(vms, differ, strict=True)
        ),
    )


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
    before: LoadedRun, one: Vm, after: LoadedRun, other: Vm, differ: tuple[Difference, ...]
) -> Pair:
    ours, theirs = before.study.workload.sizes, after.study.workload.sizes
    sizes = tuple(size for size in ours if size in theirs)
    arms = [label for label in before.study.labels if label in after.study.labels]
    if not sizes or not arms:
        what = "size" if not sizes else "arm"
        raise InputError(f"{before.label} and {after.label} have no {what} in common.")
    first, second = before.primary_of(one), after.primary_of(other)
    placed = [(first, [ours.index(size) for size in sizes]), (second, [theirs.index(size) for size in sizes])]
    values = [boot_values(analysis.points, places) for analysis, places in placed]
    found = changes(
        {arm: values[0].get(arm, {}) for arm in arms},
        {arm: values[1].get(arm, {}) for arm in arms},
        before.study.reference,
        _rules(before.result.design.equivalence, first, second),
        clocks_of((analysis.points, places) for analysis, places in placed),
    )
    return Pair(one, other, sizes, differ, found)


def _rules(margin: float, first: Analysis, second: Analysis) -> Rules:
    """What withholds a verdict in either run withholds it of their change."""
    checks = (first.positive_control, second.positive_control)
    failed = (check for check in checks if isinstance(check, ControlCheck) and not check.passed)
    control = next(failed, checks[0])
    withheld = first.withheld or second.withheld
    return rules_for(margin, withheld, control, first.measure.better, first.replicate)


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
