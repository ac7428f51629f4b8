"""What rules are asked about: one VM with everything known around it, and why the rest is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vnuma.domain.study.study import Study
from vnuma.domain.topology import prediction_confidence
from vnuma.domain.vm import setting
from vnuma.domain.vm.cpu_waits import CpuWaits
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, VmFacts
from vnuma.domain.vm.server import SqlEdition, SqlFacts, WindowsFacts
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
class PlacementFacts:
    """Where ESXi put the VM while somebody watched it with esxtop. None: not shown."""

    local_percent: float | None = None
    """N%L: share of touched memory on the VM's own nodes."""
    migrations: int | None = None
    """NMIG: moves between NUMA nodes during the time."""
    home_nodes_before: tuple[int, ...] | None = None
    home_nodes_after: tuple[int, ...] | None = None


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
    waits: CpuWaits | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    planned_sql: SqlEdition | None = None
    """The SQL Server that a design plans, where none runs yet."""

    @property
    def edition(self) -> SqlEdition | None:
        """The edition that runs, else the one that is planned."""
        return self.sql.edition if self.sql else self.planned_sql


EXTRA_CONFIG = prediction_confidence.EXTRA_CONFIG
"""The name under which `absent` says that no extraConfig could be read."""

HARDWARE = setting.HARDWARE
"""The name under which `absent` says that a design leaves the virtual hardware version open."""
