"""A fix as a whole arm: what the role vm_topology takes, and nothing besides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.hosts import host_of, vm_of
from tests.unit.checks.cases import Case, read_cases
from vnuma.checks.evaluate import evaluate
from vnuma.checks.rule import Fix
from vnuma.checks.rules.catalogue import BY_ID
from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.desired_settings import desired_settings
from vnuma.domain.vm.change import change_to


def test_a_fix_that_keeps_the_shape_names_it_and_touches_nothing_else() -> None:
    """Clearing affinity leaves vNUMA settings as they are."""
    fix = Fix("Clear it.", arm={"affinity": "none"}, topology="4x4")
    pinned = vm_of(cpuAffinity=(0, 2, 4))
    arm = Arm.model_validate(fix.ansible["vm_topology_arm"])

    change = change_to(pinned.settings, desired_settings(arm, pinned, host_of(release="7.0.3")))

    assert [edit.setting for edit in change] == ["cpuAffinity"]


def test_a_fix_without_a_known_shape_makes_no_variables() -> None:
    """Half an arm would be refused by the role."""
    assert Fix("Clear it.", arm={"affinity": "none"}).ansible == {}
    assert Fix("Reboot.").ansible == {}


def _fix(case: Case) -> Fix | None:
    (found,) = next(evaluate([case.subject()], [BY_ID[case.rule]])).failures
    return found.fix


FIXABLE = [
    (case, fix)
    for case in read_cases()
    if case.expect == "fail" and case.rule in {"T05", "T06", "T09", "T11", "T12", "T14", "T17", "A06", "A09"}
    if "superseded_by" not in case.data and (fix := _fix(case)) and fix.ansible
]


@pytest.mark.parametrize(("case", "fix"), FIXABLE, ids=[case.id for case, _ in FIXABLE])
def test_after_the_fix_the_rule_passes(case: Case, fix: Fix) -> None:
    """The arm of a fix, applied to the VM that failed, mends it."""
    subject = case.subject()
    assert subject.vm
    assert subject.host
    arm = Arm.model_validate(fix.ansible["vm_topology_arm"])

    mended = {**subject.vm.settings, **desired_settings(arm, subject.vm, subject.host)}

    after = replace(subject, vm=replace(subject.vm, settings=mended))
    assert next(evaluate([after], [BY_ID[case.rule]])).failures == []
