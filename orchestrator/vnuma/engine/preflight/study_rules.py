"""Design rules about running a study, as findings of preflight. The rules themselves are `checks`."""

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

# How a study measures is its author's choice: it is named in the report, and refuses nothing.
_NEVER_BLOCKS = "Q"


def rule_findings(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    """What the rules find on the VM as each arm would leave it; what several arms share is said once.

    What only informs, and what waits for another rule, is left out. Only the VM's own host is known
    here: whether other hosts of its cluster differ is not evaluated.
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
