"""Design rules about running a study, as findings of preflight. The rules themselves are in `checks`."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.checks.evaluate import evaluate
from vnuma.checks.finding import Finding as RuleFinding
from vnuma.checks.finding import Severity
from vnuma.checks.rules.catalogue import RULES
from vnuma.checks.study import merge_arms, study_subjects
from vnuma.checks.subject import Subject
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, VmFacts
from vnuma.engine.preflight.findings import Finding

_RULES = tuple(rule for rule in RULES if rule.id[0] in "TAMRQ")

# How a study measures is its author's choice: the report says so, and nothing is refused.
_NEVER_BLOCKS = "Q"


def rule_findings(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    """Findings of the rules on the VM as each arm would leave it, those of several arms merged.

    Informational findings and those that wait for another rule are left out. Only the VM's own host is known
    here, so rules that compare the cluster's hosts are not evaluated.
    """
    others = ("other hosts",) if host.in_drs_cluster else ()
    cluster = ClusterFacts(host.moid, f"the cluster of {host.name}", host.in_drs_cluster, (host,), others)
    subjects = study_subjects(study, Subject(vm=vm, host=host, cluster=cluster))
    found = [
        finding
        for evaluation in evaluate(subjects, _RULES)
        for finding in evaluation.failures
        if finding.severity is not Severity.INFO and not finding.superseded_by
    ]
    for finding in merge_arms(found, study.labels):
        yield _worded(finding)


def _worded(finding: RuleFinding) -> Finding:
    arms = f" ({finding.arm})" if finding.arm else ""
    seen = "; ".join(f"{name} {value}" for name, value in finding.observed.items())
    severity = "warn" if finding.rule[0] in _NEVER_BLOCKS else str(finding.severity)
    return Finding(
        finding.rule,
        "block" if severity == "block" else "warn",
        f"{finding.title}{arms}: {seen}. {finding.consequence}",
        finding.fix.text,
    )
