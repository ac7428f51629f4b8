"""What rules are evaluated on: a VM with everything known around it. Unknown facts raise: no rule guesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vnuma.domain.topology import prediction
from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.prediction import (
    HostShape,
    PowerOn,
    Prediction,
    host_by_default,
    host_shape,
    predict,
)
from vnuma.domain.topology.release import EXPOSE
from vnuma.domain.topology.topology import partial_socket
from vnuma.domain.vm import setting
from vnuma.domain.vm.estate import NotShown
from vnuma.domain.vm.facts import ClusterFacts, CpuWaits, HostFacts, VmFacts
from vnuma.domain.vm.server import SqlEdition, SqlFacts, WindowsFacts
from vnuma.domain.vm.setting import TYPED, Settings, Value

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


EXTRA_CONFIG = prediction.EXTRA_CONFIG
"""The key in `absent` if no extraConfig could be read."""

HOST_OPTIONS = "hostOptions"
"""The key in `absent` if the advanced options of the host are unknown."""

HARDWARE = setting.HARDWARE
"""The name under which `absent` says that a design leaves the virtual hardware version open."""


Known = TypeVar("Known")

WHY_ABSENT = {
    "vm": "no VM was read",
    "host": "the VM's host was not read",
    "cluster": "the host's cluster was not read",
    "guest": "neither VMware Tools nor SQL Server (--sql) reports the Windows version",
    "sql": "no login to SQL Server was given (--sql)",
    "edition": "no login to SQL Server was given (--sql)",
    "study": "no study was given (--study)",
    "placement": "vSphere's API does not show placement; esxtop on the host does (--evidence)",
    "waits": "CPU ready and co-stop are read from vCenter only for single VMs (--vm)",
}
"""The parts of a subject, and why each is absent when the subject gives no reason."""

PARTS = tuple(WHY_ABSENT)

DESCRIBED = "the host is described by its NUMA nodes alone"
"""Why a fact is unknown that no description of a host contains."""

_MOST_DIGITS = 18


def shape_of(settings: Settings) -> str:
    """Sockets x cores per socket; only the vCPUs if the sockets are unknown or not whole."""
    vcpus, cores = settings.get("numCPUs"), settings.get("numCoresPerSocket")
    if not isinstance(vcpus, int):
        return ""
    if partial_socket(settings):
        return f"{vcpus} vCPUs, {cores} per socket"
    return f"{vcpus // cores}x{cores}" if isinstance(cores, int) and cores else f"{vcpus} vCPUs"


class Unknown(Exception):
    """A fact that a rule needs was not read; the message is the reason. The evaluation catches it."""


def known(value: Known | None, what: str) -> Known:
    """The value; raises Unknown with the reason if `what` was not read."""
    if value is None:
        raise Unknown(f"{what} was not read")
    return value


class Part(Generic[Known]):
    """A part of the subject, of its name. Raises Unknown, with the reason, where it is absent."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, facts: Facts, owner: type) -> Known:
        found: Known | None = getattr(facts.subject, self._name)
        if found is None:
            raise Unknown(facts.why_absent(self._name))
        facts.__dict__[self._name] = found  # read from there from now on
        return found


class Facts:
    """One subject, caching what several rules derive from it."""

    vm = Part[VmFacts]()
    host = Part[HostFacts]()
    """The VM's host."""
    cluster = Part[ClusterFacts]()
    """The host's cluster; a standalone host is a cluster of one."""
    guest = Part[WindowsFacts]()
    """Windows in the guest."""
    sql = Part[SqlFacts]()
    """SQL Server in the guest."""
    edition = Part[SqlEdition]()
    """Edition and version of SQL Server, running or planned."""
    study = Part[StudyFacts]()
    """The study that the VM takes part in."""
    placement = Part[PlacementFacts]()
    """Where ESXi placed the VM."""
    waits = Part[CpuWaits]()
    """How long the VM's vCPUs waited for the host's CPUs."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.assumed: dict[str, str] = {}
        """Settings whose defaults were assumed since it was last emptied, each with the source."""

    def assumes(self, name: str) -> bool:
        """Whether the default of a setting is assumed, which is then recorded."""
        why = self.subject.absent.get(name)
        if not isinstance(why, NotShown):
            return False
        self.assumed[name] = why.by
        return True

    def sql_known(self, name: str, what: str) -> Any:
        """A field of `sql`. Raises Unknown if it was not read, with the failed query's error."""
        why = self.sql.unread.get(name)
        return known(getattr(self.sql, name), f"{what} ({why})" if why else what)

    @cached_property
    def studied(self) -> bool:
        """Whether the VM takes part in a study."""
        return self.subject.study is not None

    def require_running_shape(self) -> None:
        """Raise Unknown for a study's arm, since the guest shows the VM as it runs now."""
        study = self.subject.study
        if study and study.arm:
            raise Unknown(f"the VM has not been powered on as arm {study.arm} yet")

    def require_whole_sockets(self) -> None:
        """Raise Unknown for a shape that cannot power on, for which nothing can be predicted."""
        if why := partial_socket(self.vm.settings):
            raise Unknown(why)

    @cached_property
    def release(self) -> tuple[int, int]:
        """The host's ESXi release: (6, 5)."""
        return self.host.release.key

    @cached_property
    def hardware(self) -> int:
        """The virtual hardware version. Raises Unknown where a design leaves it open."""
        if HARDWARE in self.subject.absent:
            raise Unknown(f"the hardware version is unknown: {self.subject.absent[HARDWARE]}")
        return self.vm.hardware_version

    @cached_property
    def vcpus(self) -> int:
        """Number of vCPUs."""
        return self.number("numCPUs")

    @property
    def per_socket(self) -> int:
        """Cores per socket; 1 where vSphere has not chosen yet."""
        return self.number("numCoresPerSocket") or 1

    @property
    def sockets(self) -> int:
        """Virtual sockets. Raises Unknown if the last one would be only partly filled, or vSphere has not
        chosen their number yet.
        """
        self.require_whole_sockets()
        if self.number("numCoresPerSocket") == 0 and self.vcpus > 1:
            raise Unknown("cores per socket are automatic: vSphere chooses them at power-on")
        return max(1, self.vcpus // self.per_socket)

    @cached_property
    def memory_mb(self) -> int:
        """The VM's memory in MB."""
        return self.number("memoryMB")

    @property
    def affinity(self) -> tuple[int, ...]:
        """Logical CPUs that the VM is pinned to; empty: none."""
        pinned = self.setting("cpuAffinity")
        return pinned if isinstance(pinned, tuple) else ()

    @cached_property
    def cores_per_node(self) -> int:
        """Physical cores of the host's smallest NUMA node."""
        return self.host.cores_per_node

    @property
    def node_capacity(self) -> int:
        """vCPUs that ESXi puts on one NUMA node: its cores, or its threads with preferHT."""
        if self.vcpus > self.cores_per_node:
            self.key(esxi.PREFER_HT)
        return self._node_capacity

    @cached_property
    def _node_capacity(self) -> int:
        return PowerOn(self.usual_host, self.vm.settings, self.vm.hardware_version).capacity

    @cached_property
    def usual_host(self) -> HostShape:
        """What of the host decides the layout, with defaults for unread options."""
        return host_by_default(self.host)

    @cached_property
    def node_memory_mb(self) -> int:
        """Memory of the host's smallest NUMA node. Raises Unknown for a host that was described without."""
        if not self.host.node_memory_mb:
            raise Unknown("the memory of the host's NUMA nodes is unknown: describe it, as in 2x16/256")
        return self.host.node_memory_mb

    @property
    def local_memory_mb(self) -> int:
        """The most memory of a VM that this node holds. Raises Unknown as `node_memory_mb`."""
        return self.host.local_memory_mb if self.node_memory_mb else 0

    @property
    def prediction(self) -> Prediction:
        """The guest's topology after a power-on now. Raises Unknown without what decides it."""
        self.require_whole_sockets()
        self._require_keys()
        if self.has_virtual_numa:
            self.number("coresPerNumaNode")
            if self.vm.settings.get("cpuHotAddEnabled"):
                self.on(esxi.EXPOSE)
        return self._prediction

    @cached_property
    def _prediction(self) -> Prediction:
        return predict(self.usual_host, self.vm.settings, self.hardware)

    @property
    def doubted_prediction(self) -> Prediction:
        """The same nodes, with the confidence that unread settings and host options leave. For display."""
        self.require_whole_sockets()
        return predict(host_shape(self.host), self.vm.settings, self.hardware, tuple(self.subject.absent))

    def setting(self, name: str) -> Value:
        """A typed setting; None: this release or hardware version lacks it. Raises Unknown if not read."""
        settings = self.vm.settings
        if name in settings:
            return settings[name]
        if name in esxi.VIRTUAL_NUMA_SETTINGS and self._lacks_virtual_numa:
            return None
        if name in DEFAULTS and self.assumes(name):
            return DEFAULTS[name]
        if name in AUTOMATIC_CORES and self._may_be_automatic and self.assumes(name):
            return AUTOMATIC_CORES[name]
        raise Unknown(self.subject.absent.get(name) or f"{name} was not read")

    def number(self, name: str) -> int:
        """A typed setting as a number; 0 if this release lacks it."""
        value = self.setting(name)
        return value if isinstance(value, int) else 0

    def on(self, name: str) -> bool:
        """Whether a typed switch is on."""
        return self.setting(name) is True

    def key(self, name: str) -> str | None:
        """An extraConfig value as text, None: not set. Raises Unknown if extraConfig was not read."""
        value = self._keys.get(name.lower())
        if value is None:
            self._require_keys()
        return value

    def _require_keys(self) -> None:
        """Raise Unknown if there may be keys that were not read, and none may be assumed."""
        if EXTRA_CONFIG in self.subject.absent and not self.assumes(EXTRA_CONFIG):
            raise Unknown(self.subject.absent[EXTRA_CONFIG])

    def key_number(self, name: str) -> int | None:
        """An extraConfig value as a number, None: not set. Raises Unknown if it is not a number."""
        text = (self.key(name) or "").strip()
        if text and not (text.isdecimal() and len(text) <= _MOST_DIGITS):
            raise Unknown(f"{name} is {text[:40]}, which is not a number")
        return int(text) if text else None

    def key_on(self, name: str) -> bool:
        """Whether an extraConfig switch is on."""
        return (self.key(name) or "").strip().lower() in {"true", "1"}

    def option(self, name: str) -> str | None:
        """An advanced option of the host, None: not set. Raises Unknown if options were not read."""
        if self.assumes(HOST_OPTIONS):
            return None
        if self.host.described:
            raise Unknown(f"{DESCRIBED}: its advanced options are unknown")
        return known(self.host.advanced, "the host's advanced options").get(name)

    @property
    def has_virtual_numa(self) -> bool:
        """Whether release and virtual hardware have virtualNuma, such as a manual node size."""
        return self.release >= esxi.VIRTUAL_NUMA_SINCE and self.hardware >= esxi.VIRTUAL_NUMA_HARDWARE

    @property
    def manual_node_size(self) -> bool:
        """Whether virtualNuma.coresPerNumaNode is set and not automatic."""
        return self.number("coresPerNumaNode") > 0 and not self.vm.settings.get("autoCoresPerNumaNode")

    @cached_property
    def _keys(self) -> dict[str, str]:
        """extraConfig by lower-case name, since vSphere keeps the case in which a key was written."""
        return {
            name.lower(): str(value)
            for name, value in self.vm.settings.items()
            if name not in TYPED and value is not None
        }

    @cached_property
    def _may_be_automatic(self) -> bool:
        """Whether vSphere chooses the cores per socket here unless they are set, and none are known."""
        known_version = self.subject.host is not None and HARDWARE not in self.subject.absent
        return known_version and "numCoresPerSocket" not in self.vm.settings and self.has_virtual_numa

    @cached_property
    def _lacks_virtual_numa(self) -> bool:
        """Whether the host or the virtual hardware is too old for virtualNuma."""
        if self.subject.host and self.release < esxi.VIRTUAL_NUMA_SINCE:
            return True
        return HARDWARE not in self.subject.absent and self.hardware < esxi.VIRTUAL_NUMA_HARDWARE

    def why_absent(self, part: str) -> str:
        """The reason that a part of the subject is absent."""
        absent = self.subject.absent
        return absent.get(part) or (absent.get("sql") if part == "edition" else "") or WHY_ABSENT[part]


AUTOMATIC_CORES: Mapping[str, Value] = {"numCoresPerSocket": 0, "autoCoresPerSocket": True}
"""Of a new VM, since ESXi 8.0 with hardware version 20."""

DEFAULTS: Mapping[str, Value] = {
    **dict.fromkeys(("cpuAffinity", "memoryAffinity"), ()),
    **{"coresPerNumaNode": 0, "autoCoresPerNumaNode": True, EXPOSE: False, "cpuHotAddEnabled": False},
}
"""Typed settings at their defaults, in every release and hardware version that has them."""

_WORDS = {
    EXTRA_CONFIG: "numa.* keys",
    HOST_OPTIONS: "Numa.* options of the host",
    **dict.fromkeys(("cpuAffinity", "memoryAffinity"), "affinity"),
    **dict.fromkeys(("coresPerNumaNode", "autoCoresPerNumaNode"), "cores per NUMA node"),
    **dict.fromkeys(AUTOMATIC_CORES, "cores per socket"),
    EXPOSE: EXPOSE,
    "cpuHotAddEnabled": "CPU hot-add",
}


@cache
def assumed_words(assumed: tuple[tuple[str, str], ...]) -> str:
    """`assumes default numa.* keys and affinity, not shown by RVTools`, from settings and their sources."""
    by_source: dict[str, dict[str, None]] = {}
    for name, source in assumed:
        by_source.setdefault(source, {})[_WORDS[name]] = None
    parts = [f"default {' and '.join(what)}, not shown by {source}" for source, what in by_source.items()]
    return f"assumes {'; '.join(parts)}" if parts else ""
