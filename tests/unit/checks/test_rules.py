"""Every rule against its golden cases, and the rules' own data."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from types import ModuleType

import pytest

from tests.unit.checks.cases import Case, read_cases
from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import Facts, Subject, Unknown
from vnuma.checks.rule import Rule, Severity
from vnuma.checks.rules.catalogue import BY_ID, RULES, rules_in
from vnuma.domain.arm.arm import Arm

CASES = read_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_golden_case_comes_out_as_written(case: Case) -> None:
    """Outcome, severity, what is observed, the reason, the fix and what matters first."""
    evaluation = next(evaluate([case.subject()], RULES))
    failures = {finding.rule: finding for finding in evaluation.failures}
    reason = evaluation.not_evaluated.get(case.rule)
    outcome = "fail" if case.rule in failures else "pass" if reason is None else "not_evaluated"

    assert outcome == case.expect, (failures.get(case.rule), reason)
    expected = case.data
    if outcome == "not_evaluated":
        assert reason
        assert expected.get("reason", "") in reason
    if outcome != "fail":
        assert not {"severity", "title", "observed", "arm", "settings", "commands", "superseded_by"} & set(
            expected
        )
        return
    found = failures[case.rule]
    if "severity" in expected:
        assert found.severity == expected["severity"]
    assert found.title == expected.get("title", found.title)
    assert {name: found.observed.get(name) for name in expected.get("observed", {})} == expected.get(
        "observed", {}
    )
    assert found.fix.text.startswith(expected.get("fix", ""))
    assert found.fix.text
    assert expected.get("arm", dict(found.fix.arm)) == dict(found.fix.arm)
    settings = {name: list(v) if isinstance(v, tuple) else v for name, v in found.fix.settings.items()}
    assert expected.get("settings", settings) == settings
    assert expected.get("commands", found.fix.commands) == found.fix.commands
    if found.fix.arm:
        assert Arm.model_validate(found.fix.ansible["vm_topology_arm"])
    assert found.superseded_by == expected.get("superseded_by", "")


def test_every_rule_has_a_case_of_each_outcome() -> None:
    """A rule that nothing shows passing, failing and not evaluated is refused."""
    shown: dict[str, set[str]] = defaultdict(set)
    for case in CASES:
        shown[case.rule].add(case.expect)

    outcomes = {"pass", "fail", "not_evaluated"}
    lacking = {rule.id: outcomes - shown[rule.id] for rule in RULES if outcomes - shown[rule.id]}
    assert lacking == {}
    assert set(shown) <= set(BY_ID)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_rule_passes_before_it_has_read_a_fact(rule: Rule) -> None:
    """Where nothing is known a rule is not evaluated: what it says is never of a constant of ours."""
    with pytest.raises(Unknown):
        rule.check(Facts(Subject()))


def test_a_rule_without_a_check_is_refused_by_name_when_rules_are_collected() -> None:
    """Not when the first VM is checked with it."""
    module = ModuleType("topology_new")
    module.incomplete = replace(BY_ID["T01"], check=Rule.check)  # type: ignore[attr-defined]

    with pytest.raises(TypeError, match=r"T01 in topology_new"):
        tuple(rules_in(module))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_says_all_that_it_has_to(rule: Rule) -> None:
    """Texts, a source with an address, and known rules wherever it names others."""
    assert rule.sources
    assert all(source.startswith(("https://", "http://")) for source in rule.sources)
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.consequence.endswith(".")
    assert rule.fix.endswith(".")
    assert rule.condition
    assert rule.needs
    assert {*rule.yields_to, *rule.related} <= set(BY_ID)
    if rule.unconfirmed:
        assert rule.severity is not Severity.BLOCK
        assert rule.in_study is not Severity.BLOCK


UNCONFIRMED = {"M09", "M10", "Q07", "S14", "S20", "W02", "W03", "W04"}
"""Rules on what is general knowledge, in whole or in a figure: no source says it."""


def test_what_no_source_says_is_marked_and_warns_at_most() -> None:
    """Whatever the facts, on a VM in service or under study."""
    assert {rule.id for rule in RULES if rule.unconfirmed} == UNCONFIRMED
    rules = [BY_ID[rule] for rule in sorted(UNCONFIRMED)]
    found = [one for case in CASES for one in next(evaluate([case.subject()], rules)).failures]
    assert {one.rule for one in found} == UNCONFIRMED
    assert all(one.severity is not Severity.BLOCK and one.unconfirmed for one in found)


def test_every_numbered_rule_is_there() -> None:
    """By family; the number of a rule that was withdrawn is not given again."""
    withdrawn = {"T23", "M07", "R01", "R02", "R03", "R04", "R05", "W05", "S16", "S21", "Q02", "Q03"}
    last = {"T": 27, "A": 13, "M": 11, "R": 8, "W": 4, "S": 22, "Q": 8}
    numbered = {f"{letter}{number:02}" for letter, most in last.items() for number in range(1, most + 1)}

    assert sorted(rule.id for rule in RULES) == sorted(numbered - withdrawn)
