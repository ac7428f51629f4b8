"""Pair two runs' VMs, refuse what must not be compared, and compute what changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from vnuma.analysis.change_between_runs import Change, boot_values, changes, clocks_of
from vnuma.analysis.instrument_checks import ControlCheck
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Rules, rules_for
from vnuma.errors import InputError
from vnuma.report.comparison.comparability import Difference, differences
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Vm


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
            _pair(before, one, after, other, tuple(items))
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


def _pair(before: LoadedRun, one: Vm, after: LoadedRun, other: Vm, differ: tuple[Difference, ...]) -> Pair:
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
