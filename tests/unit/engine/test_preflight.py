"""Findings before a study: each rule with a case that has it and one that has not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.support.hosts import host_of, vm_of
from tests.support.studies import study
from vnuma.domain.vm.setting import Power
from vnuma.engine.preflight.findings import Finding, refuse_blocked, refuse_shown
from vnuma.engine.preflight.preflight import check, locality_findings, measurement_findings, touched_settings
from vnuma.errors import PreflightBlocked

Refuse = Callable[[list[Finding]], None]


def found(rule: str, severity: str, findings: list[Finding]) -> bool:
    """Whether a rule is among the findings with that severity."""
    return any((finding.id, finding.severity) == (rule, severity) for finding in findings)


@pytest.mark.parametrize(
    ("rule", "severity", "changes", "vm", "host"),
    [
        ("A01", "block", {}, {}, {"in_drs_cluster": True}),
        ("A03", "warn", {"all_arms": {"memory_affinity": [0]}}, {}, {}),
        ("A05", "warn", {"all_arms": {"affinity": "physical_cores"}}, {}, {}),
        ("A08", "block", {"all_arms": {"latency_sensitivity": "high"}}, {}, {}),
        ("T10", "block", {}, {}, {"cores": 8}),
        ("T22", "block", {}, {}, {"numa_nodes": host_of().numa_nodes[:1]}),
        ("P30", "block", {"all_arms": {"memory_reservation": 90000}}, {}, {}),
        ("P01", "block", {}, {"is_template": True}, {}),
        ("T18", "block", {"power": {"guest_is_asked_to": "reboot"}}, {}, {}),
        ("S05", "block", {"all_arms": {"soft_numa": "off"}}, {"power": Power.OFF}, {}),
        ("P02", "block", {}, {"question": "Moved or copied?"}, {}),
        ("P03", "block", {}, {"disabled_methods": ("ReconfigVM_Task",)}, {}),
        ("P04", "block", {}, {"power": Power.SUSPENDED}, {}),
        ("P05", "warn", {}, {"tools_running": False}, {}),
        ("P06", "warn", {}, {"has_snapshot": True}, {}),
        ("Q01", "warn", {"workload": {"forms": ["client"]}}, {}, {}),
        ("D01", "warn", {"design": {"order": "fixed"}}, {}, {}),
        ("D02", "warn", {"design": {"blocks": 5}}, {}, {}),
        ("D04", "block", {"allowed_hours": {"time_zone": "UTC", "windows": ["Wed 20:00-20:10"]}}, {}, {}),
        ("D03", "warn", {"workload": {"name": "reporting_streams", "streams": "search"}}, {}, {}),
    ],
)
def test_a_rule_finds_its_case_and_nothing_in_a_clean_one(
    rule: str, severity: str, changes: dict[str, Any], vm: dict[str, Any], host: dict[str, Any]
) -> None:
    """With the condition it is there, without it it is not."""
    changed = study(**changes)
    here = check(changed, replace(vm_of(), **vm), replace(host_of(), **host))
    here += measurement_findings(changed)
    clean = [*check(study(), vm_of(), host_of()), *measurement_findings(study())]

    assert found(rule, severity, here)
    assert not any(finding.id == rule for finding in clean)


def test_a_server_form_that_the_study_has_is_not_asked_for() -> None:
    """Both forms: what is left to do is to read both."""
    forms = {"client alone": ["client"], "both": ["client", "server"]}
    advice = {
        name: next(
            one.fix for one in check(study(workload={"forms": names}), vm_of(), host_of()) if one.id == "Q01"
        )
        for name, names in forms.items()
    }

    assert advice["client alone"] != advice["both"]


def test_some_findings_depend_on_more_than_one_thing() -> None:
    """Up to 6.0 cores per socket shape the guest; DRS that is off for a VM leaves it where it is."""
    off = study(all_arms={"follow_cores_per_socket": "off"})
    assert found("T04", "warn", check(off, vm_of(), host_of(release="8.0.3")))
    assert not found("T04", "warn", check(off, vm_of(), host_of(release="6.0.0")))

    clustered, fixed = replace(host_of(), in_drs_cluster=True), replace(vm_of(), drs_override="disabled")
    assert not found("A01", "block", check(study(), fixed, clustered))


@pytest.mark.parametrize("refuse", [refuse_blocked, partial(refuse_shown, command="vnuma plan s.yml")])
def test_blocking_findings_are_refused_together_and_warnings_are_not(refuse: Refuse) -> None:
    """One error names them all, worst first, and says that nothing was changed."""
    findings = check(study(), replace(vm_of(), is_template=True, question="Why?"), host_of())

    with pytest.raises(PreflightBlocked) as caught:
        refuse(findings)

    assert re.findall(r"P\d\d", str(caught.value)) == ["P01", "P02"]
    refuse(check(study(), vm_of(), host_of()))


def test_a_host_with_one_numa_node_is_named_once_whatever_the_arms_are() -> None:
    """No affinity and no number of vCPUs would help there."""
    streams = study(
        vcpus=16, workload={"name": "reporting_streams", "sizes": [2]}, reference="2x8", arms=["2x8", "4x4"]
    )
    host = host_of()

    (finding,) = locality_findings(streams, vm_of(), replace(host, numa_nodes=host.numa_nodes[:1]))

    assert (finding.id, finding.severity) == ("C03", "block")


def test_the_settings_that_arms_touch_decide_which_privileges_are_asked_for() -> None:
    """No affinity in the study: no privilege for it."""
    pinned = study(all_arms={"affinity": "physical_cores"})
    touched = [set(touched_settings(one, vm_of(), host_of())) for one in (study(), pinned)]
    assert touched[1] - touched[0] == {"cpuAffinity"}
