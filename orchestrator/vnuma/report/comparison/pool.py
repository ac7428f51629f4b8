"""Combine runs of one study: which arms they agree about. Refused where something must match and does not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vnuma.analysis.instrument_checks import BOOTS_FOR_WORDS, ControlCheck
from vnuma.analysis.pooling import FEWEST_RUNS, Pooled, pool
from vnuma.analysis.records import Measure
from vnuma.analysis.result import Analysis, ArmResult
from vnuma.analysis.verdict import Rules
from vnuma.domain.vm.plain_text import counted
from vnuma.errors import InputError
from vnuma.report.comparison.comparability import differences, surroundings
from vnuma.report.comparison.pair import refuse_idle
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Vm


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
        return f"{self.run.run.name} {self.vm.name}"

    def arm(self, name: str) -> ArmResult | None:
        """The arm, if this VM has enough boots of it for a verdict."""
        found = next((arm for arm in self.analysis.arms if arm.arm == name), None)
        return found if found and found.contrast.boots >= BOOTS_FOR_WORDS else None


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


def pool_runs(runs: Sequence[LoadedRun], allowed: Collection[str] = ()) -> Pool:
    """Summarise every arm over all VMs of these runs.

    Raises InputError for a run named twice, fewer than 3 VMs in all, and what must match and does not.
    """
    names = [run.run.name for run in runs]
    twice = sorted({name for name in names if names.count(name) > 1})
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
    if not why and not any(arm.contrast.boots >= BOOTS_FOR_WORDS for arm in analysis.arms):
        why = f"fewer than {BOOTS_FOR_WORDS} boots an arm"
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
