"""What rules are evaluated on: a VM with everything known around it, and why the rest is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vnuma.domain.topology import prediction_confidence
from vnuma.domain.vm import setting
from vnuma.domain.vm.facts import ClusterFacts, CpuWaits, HostFacts, VmFacts
from vnuma.domain.vm.server import SqlEdition, SqlFacts, WindowsFacts
from vnuma.domain.vm.setting import Settings

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study


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
