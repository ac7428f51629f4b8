"""A VM under study: a subject of the design rules for each arm, and the findings of all arms together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vnuma.checks.finding import Finding
from vnuma.checks.subject import StudyFacts, Subject
from vnuma.domain.arm.desired_settings import desired_settings, vcpus_of
from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import settings_after
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Settings
from vnuma.errors import PreflightBlocked


def study_subjects(study: Study, subject: Subject) -> list[Subject]:
    """One subject per arm: the VM with the arm's settings, everything else unchanged.

    An impossible arm has only its topology; `desired_settings` reports it. Raises ValueError for a subject
    without VM or host.
    """
    vm, host = subject.vm, subject.host
    if vm is None or host is None:
        raise ValueError("a study needs the VM and its host")
    arms = {label: _settings(study, label, vm, host) for label in study.labels}
    return [
        replace(
            subject,
            vm=replace(vm, settings=settings),
            study=StudyFacts(study, arms, label),
        )
        for label, settings in arms.items()
    ]


def _settings(study: Study, label: str, vm: VmFacts, host: HostFacts) -> Settings:
    arm = study.arm(label)
    try:
        desired = desired_settings(arm, vm, host)
    except PreflightBlocked:
        desired = {"numCPUs": vcpus_of(arm, vm), "numCoresPerSocket": arm.cores_per_socket or 0}
    return settings_after(vm.settings, desired)


def merge_arms(findings: Iterable[Finding], arms: tuple[str, ...]) -> list[Finding]:
    """Merge findings that several arms share; `arm` names them, and is empty for all."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.rule, finding.key, tuple(finding.observed.items()))
        groups.setdefault(key, []).append(finding)
    return [replace(group[0], arm=_named(group, arms)) for group in groups.values()]


def _named(group: list[Finding], arms: tuple[str, ...]) -> str:
    seen = [finding.arm for finding in group]
    return "" if set(seen) == set(arms) else ", ".join(dict.fromkeys(seen))
