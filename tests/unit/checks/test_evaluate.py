"""Evaluating rules: the same alone and in company, worst first, arms together, and fast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from tests.unit.checks.cases import read_cases, subject_of
from vnuma.checks.evaluate import Evaluation, evaluate
from vnuma.checks.facts import Subject
from vnuma.checks.rule import Finding, Severity
from vnuma.checks.rules.catalogue import BY_ID, RULES
from vnuma.domain.arm.arm import Arm
from vnuma.domain.study.study import Study
from vnuma.domain.topology.topology import Topology
from vnuma.engine.design_check.check import merge_arms, study_subjects

STUDY = Study.model_validate(
    {"name": "s", "vms": ["sql16"], "vcpus": 16, "reference": "1x16", "arms": ["1x16", "2x8", "16x1"]}
)


def _failures(subjects: Iterable[Subject]) -> Iterator[Finding]:
    return (finding for evaluation in evaluate(subjects, RULES) for finding in evaluation.failures)


def test_a_subject_comes_out_the_same_alone_and_among_others() -> None:
    """What is decided once for a kind of subject holds for each of that kind."""
    subjects = [case.subject() for case in read_cases()]

    together = [_told(evaluation) for evaluation in evaluate(subjects, RULES)]

    assert together == [_told(next(evaluate([subject], RULES))) for subject in subjects]


def _told(one: Evaluation) -> tuple[object, ...]:
    return one.failures, one.not_evaluated, one.passed, one.assumed


def test_findings_are_worst_first_and_waiting_ones_last() -> None:
    """30 vCPUs in sockets of six under hot-add: T11 blocks, T05 waits for it."""
    subject = subject_of(
        {
            "vm": {"numCPUs": 30, "numCoresPerSocket": 6, "cpuHotAddEnabled": True},
            "host": {"numa": "2x20", "power_policy": "dynamic"},
        }
    )
    found = next(evaluate([subject], RULES)).failures
    waiting = [finding for finding in found if finding.superseded_by]

    assert found[0].rule == "T11"
    assert [finding.severity.rank for finding in found] == sorted(finding.severity.rank for finding in found)
    assert ("T05", "T11") in {(finding.rule, finding.superseded_by) for finding in waiting}
    assert all(finding.matters for finding in waiting)


def test_every_rule_has_one_outcome_and_each_unseen_one_a_reason() -> None:
    """Nothing is lost between pass, fail and not evaluated, even when nothing is known."""
    nothing = next(evaluate([Subject()], RULES))

    assert list(nothing.not_evaluated) == [rule.id for rule in RULES]
    assert (nothing.failures, nothing.passed) == ([], 0)
    assert all(nothing.not_evaluated.values())


def test_a_host_alone_is_checked_without_a_vm() -> None:
    """T22 finds interleaving on the host itself."""
    subject = replace(subject_of({"host": {"numa": "1x32", "packages": 2}}), vm=None)

    (found,) = next(evaluate([subject], [BY_ID["T22"]])).failures
    assert (found.kind, found.name, found.vm) == ("host", "esx01", "")


def test_general_knowledge_never_blocks() -> None:
    """An unconfirmed rule that fails is a warning at most."""
    loud = replace(BY_ID["W03"], severity=Severity.BLOCK)
    subject = subject_of({"sql": {"vcpus": 8, "sockets": 2}})

    (found,) = next(evaluate([subject], [loud])).failures
    assert (found.severity, found.unconfirmed) == (Severity.WARN, True)


def test_what_several_arms_share_is_said_once() -> None:
    """M01 holds for every arm, T03 for one: it names it."""
    subject = subject_of({"host": {"release": "6.0.0"}})
    found = merge_arms(_failures(study_subjects(STUDY, subject)), STUDY.labels)
    arms = {finding.rule: finding.arm for finding in found if finding.rule in {"M01", "T03"}}

    assert arms == {"M01": "", "T03": "16x1"}


def test_an_impossible_arm_is_judged_by_its_shape() -> None:
    """More vCPUs than the host has cores: the recipe refuses it, and T10 says so of that arm alone."""
    wide = STUDY.model_copy(update={"arms": (*STUDY.arms, Arm(topology=Topology(2, 20)))})
    found = merge_arms(_failures(study_subjects(wide, subject_of({}))), wide.labels)

    assert [finding.arm for finding in found if finding.rule == "T10"] == ["2x20"]


def test_a_study_needs_a_vm_and_its_host() -> None:
    """Without them there is nothing to shape."""
    with pytest.raises(ValueError, match="needs the VM and its host"):
        study_subjects(STUDY, Subject())
