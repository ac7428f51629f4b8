"""An estate at the time of reading: VMs, their hosts and clusters, and what could not be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from vnuma.domain.vm.facts import ClusterFacts, CpuWaits, HostFacts, VmFacts
from vnuma.domain.vm.server import SqlEdition, WindowsFacts
from vnuma.domain.vm.setting import Power, Settings


@dataclass(frozen=True)
class Unseen:
    """Something that could not be read, and why. `kind` is vm, host, cluster, tags, sheet, column or plan."""

    kind: str
    name: str
    why: str


class Unread(Unseen):
    """A VM of a design that could not be read: nothing of it is checked."""


class NotShown(str):
    """Why a setting is unknown: its source never shows it.

    Then its default may be assumed, and the result says so; never where a value could not be read.
    """

    __slots__ = ("by",)
    by: str
    """The source, such as `RVTools`."""

    def __new__(cls, by: str) -> NotShown:
        reason = super().__new__(cls, f"{by} does not show it")
        reason.by = by
        return reason


HOST_DECIDES = "the design leaves the hardware version to the host"
"""Why a new VM's hardware version is unknown before its host is."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Where code declares a VM: a file, relative to the working directory or else the design, and a line."""

    file: str
    line: int


@dataclass(frozen=True)
class Before:
    """A planned VM's present state, from the plan's prior state; `unknown` names what that lacks."""

    settings: Settings
    hardware_version: int
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class EstateVm:
    """A VM, and why some of its facts are unknown: by setting, or "host", or "extraConfig".

    `tags` are vSphere's, each as `category:name`; None: not read.
    """

    facts: VmFacts
    absent: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] | None = None
    guest: WindowsFacts | None = None
    """Windows as reported by VMware Tools; None: not reported, or another system."""
    declared: Declared | None = None
    """Where a design's code declares it; None: no code, or not found."""
    sql: SqlEdition | None = None
    """The SQL Server that a design plans; None: none named, or the VM exists."""
    accepted: tuple[str, ...] = ()
    """Accepted findings in a design, verbatim; see `vnuma.estate.waivers`."""
    hardware_of_host: bool = False
    """Whether its hardware version comes from the host in its design: another host gives its own."""
    offered: tuple[int, ...] = ()
    """The hardware versions of which its host chooses the highest that it runs; empty: its own is given."""
    before: Before | None = None
    """The VM before the plan is applied; None: it is new, or unknown."""
    waits: CpuWaits | None = None
    """How long its vCPUs waited; None: not read, with the reason in `absent` under "waits" if tried."""


SourceKind = Literal["vcenter", "rvtools", "terraform", "ansible", "table", "vmx", "ovf", "api"]


def running_memory(vms: Iterable[EstateVm]) -> Mapping[str, Mapping[str, int]]:
    """MB of the running VMs, by host and VM (managed object ids). Empty for any other host."""
    running: dict[str, dict[str, int]] = defaultdict(dict)
    for vm in vms:
        memory = vm.facts.settings.get("memoryMB")
        if vm.facts.power is Power.ON and isinstance(memory, int):
            running[vm.facts.host_moid][vm.facts.moid] = memory
    return running


@dataclass(frozen=True)
class Estate:
    """One vCenter, one export of it, or one design.

    `read_at` is UTC in ISO 8601; `simulated` names the lab's scenario.
    """

    source: str
    kind: SourceKind
    read_at: str
    product: str
    version: str
    vms: tuple[EstateVm, ...]
    clusters: tuple[ClusterFacts, ...]
    unseen: tuple[Unseen, ...] = ()
    simulated: str | None = None
    whole: bool = True
    """Whether everything was read, rather than some VMs by name."""
    full_at: str = ""
    """When every VM was last read in full, as `read_at`; empty: unknown."""
    taken_over: int = 0
    """VMs with the configuration of an earlier reading, unchanged according to vCenter."""

    @cached_property
    def hosts(self) -> Mapping[str, HostFacts]:
        """Every readable host, by managed object id."""
        return {host.moid: host for cluster in self.clusters for host in cluster.hosts}

    @cached_property
    def cluster_of(self) -> Mapping[str, ClusterFacts]:
        """Each host's cluster, by the host's managed object id."""
        return {host.moid: cluster for cluster in self.clusters for host in cluster.hosts}
