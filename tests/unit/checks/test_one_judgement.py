"""What advice avoids for a reason, a rule states; what it calls worth having, no rule warns of."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from vnuma.checks.advice import Candidate, Worth, advise, planned_vm
from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import Subject
from vnuma.checks.rule import Finding, Severity
from vnuma.checks.rules.catalogue import RULES
from vnuma.domain.topology.forecast import PlannedGuest
from vnuma.domain.topology.release import hardware_version_of
from vnuma.domain.topology.vm_location import parse_host
from vnuma.domain.vm.facts import ClusterFacts, HostFacts
from vnuma.domain.vm.server import SqlEdition

STATED = {
    "does not fit": {"M02"},
    "is remote": {"M02", "T06", "T08", "T09", "T27"},
    "for a VM that needs": {"T06", "T09", "T27"},
    "are spread unevenly": {"M02", "T08", "T10", "T25"},
    "MAXDOP within a node": {"M02", "T10", "T25"},
    "not match": {"T26"},
    "depending on the host": {"T19"},
}
"""Words of a reason, and the rules that state it; a reason with a rule's number is stated by that rule."""


SQL = SqlEdition("Developer Edition", 16)


def _findings(
    one: Candidate, memory_mb: int, hosts: list[HostFacts], hardware: int
) -> dict[str, list[Finding]]:
    """The rules on the shape that fail, on any of the hosts."""
    shape = one.topology
    size = {"numCPUs": shape.vcpus, "numCoresPerSocket": shape.cores_per_socket, "memoryMB": memory_mb}
    vm = planned_vm({**size, **one.settings}, hardware)
    cluster = ClusterFacts("c", "c", None, tuple(replace(host, moid=str(n)) for n, host in enumerate(hosts)))
    found: dict[str, list[Finding]] = {}
    for host in cluster.hosts:
        (evaluation,) = evaluate([Subject(vm=vm, host=host, cluster=cluster, planned_sql=SQL)], RULES)
        for finding in evaluation.failures:
            found.setdefault(finding.rule, []).append(finding)
    return found


def _rules_for(reason: str) -> set[str]:
    number = re.match(r"([TRSW]\d\d): ", reason)
    if number:
        return {number[1]}
    return next(rules for words, rules in STATED.items() if words in reason)


@settings(max_examples=150, deadline=None)
@given(
    vcpus=st.sampled_from([2, 4, 6, 8, 9, 12, 16, 20, 22, 24, 28, 30, 32, 40, 48, 56, 64, 72, 96, 128]),
    memory_gb=st.sampled_from([8, 64, 200, 384, 512, 768, 1200]),
    nodes=st.lists(
        st.sampled_from(["2x8/128", "2x12/192", "2x16/256", "2x28/384", "4x14/256", "2x64/512", "1x32/512"]),
        min_size=1,
        max_size=2,
        unique=True,
    ),
    release=st.sampled_from(["6.0", "6.5", "7.0", "8.0"]),
)
def test_advice_and_rules_judge_alike(vcpus: int, memory_gb: int, nodes: list[str], release: str) -> None:
    """Over sizes, hosts, releases: each reason against a shape is a rule's, and a good shape breaks none."""
    hosts = [parse_host(spec, release) for spec in nodes]
    hardware = hardware_version_of(hosts[0].release.version)
    advice = advise(vcpus, memory_gb * 1024, hosts, hardware, PlannedGuest())
    for one in advice.candidates:
        found = _findings(one, memory_gb * 1024, hosts, hardware)
        if one.worth is Worth.AVOIDING:
            for reason in one.reasons:
                assert _rules_for(reason) & found.keys(), (str(one.topology), reason, sorted(found))
        elif one.worth is Worth.HAVING:
            loud = {
                rule for rule, some in found.items() if any(it.severity is not Severity.INFO for it in some)
            }
            assert loud <= ({"T19", "T25"} if len(hosts) > 1 else set()), (str(one.topology), loud)
