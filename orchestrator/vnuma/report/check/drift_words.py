"""Drift against a design: as text, and as rows for formats that list findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from vnuma.checks.against_design import Difference, Drift
from vnuma.domain.vm.change import value_words
from vnuma.domain.vm.config_event import Author
from vnuma.domain.vm.estate import Declared
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.plain_text import counted
from vnuma.domain.vm.setting import AUTOMATIC, Value
from vnuma.report.check.words import first_names

_NAMED = 5

TITLE = "The VM is not as designed"
MISSING = "The VM is only in the design"
CONSEQUENCE = "Somebody changed the VM, or the design was never applied."
FIX = "Restore the designed settings, or change the design."


@dataclass(frozen=True)
class DriftRow:
    """One VM that is not as designed; `facts` is None for one that is only in the design."""

    name: str
    title: str
    observed: str
    design: str
    facts: VmFacts | None = None
    declared: Declared | None = None

    @property
    def key(self) -> str:
        """What identifies the VM."""
        return self.facts.key if self.facts else self.name

    @property
    def path(self) -> str:
        """The inventory path; the name of a VM that does not exist."""
        return self.facts.path if self.facts else self.name


def rows(drift: Drift | None) -> Iterator[DriftRow]:
    """The VMs that `--fail-on drift` counts."""
    if drift is None:
        return
    for vm in drift.vms:
        words = (f"{difference_words(one)}; {author_words(one)}" for one in vm.differences)
        yield DriftRow(vm.facts.name, TITLE, "; ".join(words), vm.design, vm.facts, vm.declared)
    for one in drift.only_design:
        yield DriftRow(one.name, MISSING, "", one.where)


def headline(drift: Drift) -> str:
    """`drift from plan.json: 2 of 14 VMs differ in 3 settings; 1 VM only in the design`."""
    differ = "differs" if len(drift.vms) == 1 else "differ"
    number = f"{len(drift.vms):,} of {counted(drift.compared, 'VM')}"
    head = f"drift from {', '.join(drift.designs)}: {number} {differ}"
    parts = [f"{head} in {counted(drift.settings, 'setting')}" if drift.vms else head]
    parts += [
        f"{counted(len(some), 'VM')} {where}"
        for some, where in (
            (drift.only_design, "only in the design"),
            (drift.only_site, "not in the design"),
            (drift.unmatched, "not compared"),
        )
        if some
    ]
    return "; ".join(parts)


def difference_words(one: Difference) -> str:
    """`numCoresPerSocket is 16, designed 8`."""
    return f"{one.setting} is {_value(one.setting, one.now)}, designed {_value(one.setting, one.design)}"


def author_words(one: Difference) -> str:
    """Who changed it and when, or why that is unknown."""
    if isinstance(one.author, Author):
        was = f", it was {one.author.before}" if one.author.before else ""
        return f"changed by {one.author.user} at {one.author.at[:19].replace('T', ' ')} UTC{was}"
    return f"changed by: not known ({one.author})"


def one_sided_words(drift: Drift) -> Iterator[str]:
    """VMs that only one of the two has, and those not compared, by name as far as they fit."""
    if drift.only_design:
        yield f"only in the design: {first_names([one.name for one in drift.only_design], _NAMED)}"
    if drift.only_site:
        yield f"not in the design: {first_names([one.name for one in drift.only_site], _NAMED)}"
    for one in drift.unmatched[:_NAMED]:
        yield f"not compared: {one.name}: {one.why}"


def silent_words(drift: Drift) -> Iterator[str]:
    """Settings that were not compared, by reason: `2 settings on 14 VMs (cpuAffinity, ...): why`."""
    by_reason: dict[str, dict[str, int]] = defaultdict(dict)
    for (setting, why), vms in drift.not_compared.items():
        by_reason[why][setting] = vms
    for why, found in sorted(by_reason.items()):
        names = ", ".join(sorted(found)[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
        yield f"{counted(len(found), 'setting')} on {counted(max(found.values()), 'VM')} ({names}): {why}"


def _value(setting: str, value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "automatic" if setting in AUTOMATIC and value == 0 else value_words(value)
