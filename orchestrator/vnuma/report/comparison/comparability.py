"""What two runs must have in common before their times may be compared, and what else differs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vnuma.report.model.configuration import configuration
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import direction
from vnuma.store.rows import Vm

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
