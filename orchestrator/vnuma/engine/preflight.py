"""Everything that would spoil or break a study, looked for before the first change, reported together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from vnuma.domain.facts import HostFacts, VmFacts
from vnuma.domain.recipe import desired_settings
from vnuma.domain.release import DECOUPLED_SINCE, MAX_PER_NODE
from vnuma.domain.setting import Power
from vnuma.domain.study import Study
from vnuma.engine.baseline import parse_mark
from vnuma.errors import ArmImpossible, PreflightBlocked

Severity = Literal["block", "warn", "info"]

LOCK = "P28"
"""Another study's lock: alone it has an exit code of its own."""


@dataclass(frozen=True)
class Finding:
    """One thing found: the rule's id, how bad it is, what it is and what helps."""

    id: str
    severity: Severity
    what: str
    fix: str = ""


def check(study: Study, vm: VmFacts, host: HostFacts) -> list[Finding]:
    """Everything that vSphere's facts tell about this study on this VM, worst first."""
    findings = [*_arms(study, vm, host), *_vm(study, vm), *_host(study, vm, host), *_measurement(study)]
    return worst_first(findings)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once: what blocks before what warns, then by id."""
    order = {"block": 0, "warn": 1, "info": 2}
    return sorted(dict.fromkeys(findings), key=lambda finding: (order[finding.severity], finding.id))


def under_study(name: str, lease: str | None) -> Iterator[Finding]:
    """Another study has the VM."""
    mark = parse_mark(lease)
    if mark:
        yield Finding(
            LOCK,
            "block",
            f"{name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}.",
            f"Wait, or ask them to: vnuma stop {mark['run']}",
        )


def touched_settings(study: Study, vm: VmFacts, host: HostFacts) -> set[str]:
    """Every setting that some arm of the study sets on this VM."""
    touched: set[str] = set()
    for label in study.labels:
        try:
            touched |= set(desired_settings(study.arm(label), vm, host))
        except PreflightBlocked:
            continue  # reported by `check`; the other arms still tell theirs
    return touched


def refuse_blocked(findings: Iterable[Finding]) -> None:
    """Raise PreflightBlocked that lists every blocking finding."""
    blocks = [finding for finding in findings if finding.severity == "block"]
    if blocks:
        lines = [
            f"{finding.id} {finding.what}" + (f"\n  {finding.fix}" if finding.fix else "")
            for finding in blocks
        ]
        raise PreflightBlocked("\n".join(lines) + "\nNothing was changed.")


def _arms(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    decoupled = host.release.key >= DECOUPLED_SINCE
    for label in study.labels:
        arm = study.arm(label)
        try:
            desired = desired_settings(arm, vm, host)
        except ArmImpossible as error:
            yield Finding(error.rule, "block", error.what, error.fix or "")
            continue
        if desired.get("memoryAffinity"):
            yield Finding(
                "A03",
                "warn",
                "Memory affinity is deprecated since vSphere 6.0; nothing here shows that ESXi honours it.",
                "Read its arms as experimental, or use numa_node_affinity.",
            )
        pinned = desired.get("cpuAffinity")
        if isinstance(pinned, tuple) and pinned and len(pinned) == desired["numCPUs"]:
            yield Finding(
                "A05",
                "warn",
                f"{len(pinned)} vCPUs are pinned to as many logical CPUs; the VM's other work shares them.",
                "Leave room: affinity: {physical_cores: fewest, spare: 1}.",
            )
        sized = desired.get(MAX_PER_NODE) or desired.get("coresPerNumaNode")
        if arm.follow_cores_per_socket in {"off", "keep"} and not sized and decoupled:
            yield Finding(
                "T04",
                "warn",
                f"On ESXi {host.release.version} cores per socket alone change no vNUMA nodes.",
                "Set follow_cores_per_socket: auto, or read the result as a comparison of cosmetic shapes.",
            )


def _vm(study: Study, vm: VmFacts) -> Iterator[Finding]:
    if vm.is_template:
        yield Finding("P01", "block", f"{vm.name} is a template; it cannot be powered on.", "Use a clone.")
    if vm.question:
        yield Finding(
            "P02",
            "block",
            f"{vm.name} waits for an answer: {vm.question}",
            "Answer it in the vSphere Client.",
        )
    if "ReconfigVM_Task" in vm.disabled_methods:
        yield Finding(
            "P03",
            "block",
            f"{vm.name} may not be reconfigured now: a backup or replication holds it.",
            "Wait until it has ended.",
        )
    if vm.power is Power.SUSPENDED:
        yield Finding(
            "P04", "block", f"{vm.name} is suspended.", "Resume it, shut it down, then start again."
        )
    if study.sets_soft_numa and vm.power is not Power.ON:
        yield Finding(
            "S05",
            "block",
            f"an arm sets soft_numa, but {vm.name} is not on: SQL Server's own setting cannot be read.",
            "Start the VM, or leave soft_numa out.",
        )
    if vm.power is Power.ON and not vm.tools_running:
        yield Finding(
            "P05",
            "warn",
            f"VMware Tools do not run in {vm.name}; its first shutdown waits for them.",
            "Look whether the guest is still booting, or start Tools in it.",
        )
    if vm.has_snapshot:
        yield Finding(
            "P06",
            "warn",
            f"{vm.name} has a snapshot; its disks are slower than usual.",
            "Delete it before measuring.",
        )


def _host(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    if len(host.numa_nodes) < 2 <= host.packages:
        yield Finding(
            "T22",
            "warn",
            f"{host.name} shows one NUMA node for {host.packages} sockets.",
            "Turn node interleaving off in its BIOS.",
        )
    if host.in_drs_cluster and vm.drs_override != "disabled":
        yield Finding(
            "A01",
            "block",
            f"{host.name} is in a DRS cluster and {vm.name} has no override: it may be moved in the middle.",
            "Set its DRS level to Disabled, then: vnuma plan STUDY",
        )


def _measurement(study: Study) -> Iterator[Finding]:
    if study.workload.forms[0] == "client":
        yield Finding(
            "Q01",
            "warn",
            "The first form streams rows to the client: network and client are part of its time.",
            "Read the server form beside it.",
        )
    yield Finding(
        "Q06",
        "warn",
        "The tables' rows fit the processor's cache: distance to memory shows little.",
        "Say so when you quote the result.",
    )
    if study.design.order == "fixed":
        yield Finding(
            "D01",
            "warn",
            "Fixed order: drift looks like an effect, so no verdict will be given.",
            "Set order: randomised.",
        )
    if study.design.most_blocks < 6:
        yield Finding(
            "D02",
            "warn",
            f"{study.design.most_blocks} blocks: verdicts need at least 6.",
            "Set blocks: 6 or more.",
        )
