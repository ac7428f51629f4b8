"""Find everything that would spoil or break a study before the first change, and report it together."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import Subject
from vnuma.checks.rule import Finding as RuleFinding
from vnuma.checks.rule import Severity
from vnuma.checks.rules.catalogue import RULES
from vnuma.domain.arm.desired_settings import desired_settings
from vnuma.domain.study.cell_time import assumed_cell_seconds
from vnuma.domain.study.study import Study
from vnuma.domain.topology.release import VIRTUAL_NUMA_SINCE
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.design_check.check import merge_arms, study_subjects
from vnuma.engine.lease.hours import LONGER, why_never
from vnuma.engine.lease.run_mark import parse_mark
from vnuma.engine.preflight.findings import Finding, worst_first
from vnuma.errors import ArmImpossible

LOCK = "P28"
"""Another study's lock; on its own it has its own exit code."""


def check(study: Study, vm: VmFacts, host: HostFacts) -> list[Finding]:
    """Findings from vSphere's facts about this study on this VM, worst first."""
    impossible = list(_arms(study, vm, host))
    said = {finding.id for finding in impossible if finding.severity == "block"}
    rules = [finding for finding in rule_findings(study, vm, host) if finding.id not in said]
    return worst_first(
        [*impossible, *_vm(study, vm), *_power(study, host), *rules, *measurement_findings(study)]
    )


def under_study(name: str, lease: str | None) -> Iterator[Finding]:
    """The finding that another study has the VM."""
    mark = parse_mark(lease)
    if mark:
        yield Finding.block(
            LOCK,
            f"{name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}.",
            f"Wait, or ask them to: vnuma stop {mark['run']}",
        )


def touched_settings(study: Study, vm: VmFacts, host: HostFacts) -> set[str]:
    """Every setting that some arm of the study sets on this VM."""
    touched: set[str] = {"rebootPowerOff"} if study.power.guest_is_asked_to == "reboot" else set()
    for label in study.labels:
        try:
            touched |= set(desired_settings(study.arm(label), vm, host))
        except ArmImpossible:
            continue  # reported by `check`; the other arms still report theirs
    return touched


def _arms(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    for label in study.labels:
        arm = study.arm(label)
        try:
            desired = desired_settings(arm, vm, host)
        except ArmImpossible as error:
            yield Finding.block(error.rule, error.what, error.fix or "")
            continue
        if desired.get("memoryAffinity"):
            yield Finding.warn(
                "A03",
                (
                    "Memory affinity is deprecated since vSphere 6.0; vnuma cannot tell whether ESXi "
                    "honours it."
                ),
                "Read its arms as experimental, or use numa_node_affinity.",
            )


def _vm(study: Study, vm: VmFacts) -> Iterator[Finding]:
    if vm.is_template:
        yield Finding.block("P01", f"{vm.name} is a template; it cannot be powered on.", "Use a clone.")
    if vm.question:
        yield Finding.block(
            "P02",
            f"{vm.name} waits for an answer to a question: {vm.question}",
            "Answer it in the vSphere Client.",
        )
    if "ReconfigVM_Task" in vm.disabled_methods:
        yield Finding.block(
            "P03",
            f"{vm.name} cannot be reconfigured now: a backup or replication holds it.",
            "Wait until it has ended.",
        )
    if vm.unread:
        yield Finding.warn(
            "P40",
            f"{vm.name}: not evaluated, as vCenter answered in an unexpected form: {'; '.join(vm.unread)}.",
            "Report it with the file of vnuma doctor --record FILE.",
        )
    if vm.power is Power.SUSPENDED:
        yield Finding.block("P04", f"{vm.name} is suspended.", "Resume it, shut it down, then start again.")
    if study.sets_soft_numa and vm.power is not Power.ON:
        yield Finding.block(
            "S05",
            f"an arm sets soft_numa, but {vm.name} is not on: SQL Server's own setting cannot be read.",
            "Start the VM, or remove soft_numa.",
        )
    if vm.power is Power.ON and not vm.tools_running:
        yield Finding.warn(
            "P05",
            f"VMware Tools do not run in {vm.name}; its first shutdown waits for them.",
            "Check whether the guest is still booting, or start Tools in it.",
        )
    if vm.has_snapshot:
        yield Finding.warn(
            "P06",
            f"{vm.name} has a snapshot; its disks are slower than usual.",
            "Delete it before measuring.",
        )


def _power(study: Study, host: HostFacts) -> Iterator[Finding]:
    if study.power.guest_is_asked_to == "reboot" and host.release.key < VIRTUAL_NUMA_SINCE:
        yield Finding.block(
            "T18",
            f"A reboot that ends in power-off needs ESXi 8.0; {host.name} is {host.release.version}.",
            "Remove guest_is_asked_to from the study's power section.",
        )


def measurement_findings(study: Study) -> Iterator[Finding]:
    """Problems of the design: no verdict possible, or a cell that can never start."""
    if study.design.order == "fixed":
        yield Finding.warn(
            "D01",
            "Fixed order: drift looks like an effect, so there will be no verdict.",
            "Set order: randomised.",
        )
    if study.design.most_blocks < 6:
        yield Finding.warn(
            "D02", f"{study.design.most_blocks} blocks: verdicts need at least 6.", "Set blocks: 6 or more."
        )
    never = why_never(study, assumed_cell_seconds(study))
    if never:
        yield Finding.block("D04", never, LONGER)
    caution = study.workload.caution()
    if caution is not None:
        yield Finding.warn("D03", *caution)


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
