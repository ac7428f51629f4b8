"""What rules are asked about: one VM with everything known around it, and why the rest is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vnuma.domain.study.study import Study
from vnuma.domain.topology import prediction_confidence
from vnuma.domain.vm.change import Change
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, VmFacts
from vnuma.domain.vm.server import SqlFacts, WindowsFacts
from vnuma.domain.vm.setting import Settings


@dataclass(frozen=True)
class StudyFacts:
    """A study in which this VM takes part.

    `arm` is the arm that the subject's VM settings stand for; empty: the VM as it is now.
    `arms` holds the VM's settings as each arm would leave them, by label.
    """

    study: Study
    arms: Mapping[str, Settings]
    arm: str = ""


@dataclass(frozen=True)
class MethodFacts:
    """How timings are taken and read. The defaults say how vnuma itself does it."""

    drains_every_result: bool = True
    """Every result set is fetched and messages are read after each (cursor.nextset())."""
    fixed_language: bool = True
    """SET LANGUAGE us_english stands before the timed batch."""
    takes_last_execution_line: bool = True
    """Of several "SQL Server Execution Times" lines in a batch the last one counts."""
    orders_top: bool = True
    """TOP (n) has an ORDER BY, so every run reads the same rows."""
    repeats_short_batches: bool = False
    """Batches of a few milliseconds are repeated inside one timed batch."""
    locality_from: str = "memory_nodes"
    """Where locality in the guest is read: memory_nodes, buffer_node, or host."""


@dataclass(frozen=True)
class PlacementFacts:
    """Where ESXi put the VM during a time of interest, from esxtop, sched-stats or vmware.log."""

    local_percent: float | None = None
    """N%L: share of touched memory on the VM's own nodes."""
    migrations: int | None = None
    """NMIG: moves between NUMA nodes during the time."""
    home_nodes_before: tuple[int, ...] | None = None
    home_nodes_after: tuple[int, ...] | None = None
    idle: bool | None = None
    """Nothing ran in the guest: only touched memory counts, so 100% proves nothing."""


@dataclass(frozen=True)
class ChangeFacts:
    """A change that somebody is about to make, and what will be put back afterwards."""

    change: Change
    powered_off: bool
    """Whether the VM is off when the change is made, or is shut down first."""
    via: str = "vnuma"
    """What makes the change: vnuma, or the Ansible module vmware_guest."""
    restores: bool = False
    """Whether this change puts a baseline back."""
    baseline: Settings | None = None
    """What was saved before the first change; None: nothing was."""


@dataclass(frozen=True)
class VcenterFacts:
    """The vCenter or ESXi server that answered."""

    name: str
    version: str
    simulator: bool
    """Whether it is a simulator rather than VMware's own."""
    overlays_numa: bool = False
    """Whether that simulator reflects virtualNuma into what is read back."""


@dataclass(frozen=True)
class Subject:
    """One VM (or a host or cluster alone) and the facts around it. None: not known.

    `absent` says why, by name of the part ("sql", "guest", "host"), or of one fact: a setting's name
    ("cpuAffinity"), or "extraConfig" where no extraConfig could be read (an RVTools export has none).
    """

    vm: VmFacts | None = None
    host: HostFacts | None = None
    cluster: ClusterFacts | None = None
    guest: WindowsFacts | None = None
    sql: SqlFacts | None = None
    study: StudyFacts | None = None
    placement: PlacementFacts | None = None
    change: ChangeFacts | None = None
    method: MethodFacts | None = None
    vcenter: VcenterFacts | None = None
    absent: Mapping[str, str] = field(default_factory=dict)


EXTRA_CONFIG = prediction_confidence.EXTRA_CONFIG
"""The name under which `absent` says that no extraConfig could be read."""
