"""What rules are evaluated on: a VM with everything known around it, and why the rest is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from vnuma.checks.finding import Finding
from vnuma.domain.arm.desired_settings import desired_settings, vcpus_of
from vnuma.domain.study.study import Study
from vnuma.domain.topology import prediction_confidence
from vnuma.domain.vm import setting
from vnuma.domain.vm.change import settings_after
from vnuma.domain.vm.facts import ClusterFacts, CpuWaits, HostFacts, VmFacts
from vnuma.domain.vm.server import SqlEdition, SqlFacts, WindowsFacts
from vnuma.domain.vm.setting import Settings
from vnuma.errors import PreflightBlocked


@dataclass(frozen=True)
class StudyFacts:
    """A study with this VM.

    `arm` is the arm in the subject's VM settings; empty: the VM as it is now. `arms` has the VM's settings as
    each arm would leave them, by label.
    """

    study: Study
    arms: Mapping[str, Settings]
    arm: str = ""


@dataclass(frozen=True)
class PlacementFacts:
    """Where ESXi placed the VM, observed with esxtop. None: not shown."""

    local_percent: float | None = None
    """N%L: share of touched memory on the VM's own nodes."""
    migrations: int | None = None
    """NMIG: moves between NUMA nodes while observed."""
    home_nodes_before: tuple[int, ...] | None = None
    home_nodes_after: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Subject:
    """One VM (or a host or cluster alone) and the facts around it. None: unknown.

    `absent` says why, by name of the part ("sql", "guest", "host") or of one fact: a setting's name
    ("cpuAffinity"), "extraConfig" for all keys, or "hostOptions". If a reason is `NotShown`, rules assume the
    default.
    """

    vm: VmFacts | None = None
    host: HostFacts | None = None
    cluster: ClusterFacts | None = None
    guest: WindowsFacts | None = None
    sql: SqlFacts | None = None
    study: StudyFacts | None = None
    placement: PlacementFacts | None = None
    waits: CpuWaits | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    planned_sql: SqlEdition | None = None
    """The SQL Server that a design plans, if none runs yet."""

    @property
    def edition(self) -> SqlEdition | None:
        """The running edition, else the planned one."""
        return self.sql.edition if self.sql else self.planned_sql


EXTRA_CONFIG = prediction_confidence.EXTRA_CONFIG
"""The key in `absent` if no extraConfig could be read."""

HOST_OPTIONS = "hostOptions"
"""The key in `absent` if the advanced options of the host are unknown."""

HARDWARE = setting.HARDWARE
"""The name under which `absent` says that a design leaves the virtual hardware version open."""


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
