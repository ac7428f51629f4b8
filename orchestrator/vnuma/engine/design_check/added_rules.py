"""What describing a host would add to the check of a design that names none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from vnuma.checks.evaluate import Evaluation, evaluate
from vnuma.checks.rule import Rule
from vnuma.checks.subject import Subject
from vnuma.domain.topology.host_spec import parse_host
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.engine.design_check.planned_host import on_hosts

_EXAMPLE = "2x16/256@8.0"


def added_by_host(
    design: Estate, rules: Sequence[Rule], subject_of: Callable[[Estate, EstateVm], Subject]
) -> int:
    """How many rules --host-nodes allows that no VM of this design allows without a host.

    They are counted with an example host; a few rules are of other releases than its own.
    """
    now = evaluate([subject_of(design, vm) for vm in design.vms], rules)
    there = on_hosts(design, VmLocation((parse_host(_EXAMPLE, "8.0", 2),)), None)
    then = evaluate([subject_of(there, vm) for vm in there.vms], rules)
    return len(_evaluated(then) - _evaluated(now))


def _evaluated(evaluations: Iterable[Evaluation]) -> set[str]:
    """Rules that could be evaluated on at least one VM."""
    return {
        rule.id
        for one in evaluations
        for rule, answer in zip(one.rules, one.answers, strict=True)
        if not isinstance(answer, str)
    }
