"""An arm: one configuration under test, and the topology that its guest should see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.topology import Topology
from vnuma.domain.vm.setting import TYPED, Since, is_extra_config
from vnuma.words.validation import Strict

Automatic = Literal["auto"]
AsItIs = Literal["keep"]


def _topology(value: object) -> Topology | str:
    if isinstance(value, Topology) or value in ("auto", "keep"):
        return value
    if isinstance(value, str):
        return Topology.parse(value)
    raise ValueError(f"{value!r} is not a topology; write sockets x cores per socket, as in 2x8, or auto")


TopologyField = Annotated[
    Topology | Automatic | AsItIs,
    BeforeValidator(_topology),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": "^([1-9][0-9]*x[1-9][0-9]*|auto|keep)$", "examples": ["2x8", "auto"]}
    ),
]


def _switch(value: object) -> object:
    """YAML 1.1, as in Ansible, turns on and off into true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


Switch = Annotated[Literal["keep", "on", "off"], BeforeValidator(_switch)]
AutoSwitch = Annotated[Literal["keep", "auto", "on", "off"], BeforeValidator(_switch)]
CpuNumber = Annotated[int, Field(ge=0)]
CpuList = Annotated[tuple[CpuNumber, ...], Field(min_length=1)]
NodeList = Annotated[tuple[CpuNumber, ...], Field(min_length=1)]
Megabytes = Annotated[int, Field(gt=0)]
MemorySize = Annotated[int, Field(gt=0, multiple_of=4)]
Megahertz = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


def _numa_keys(keys: Mapping[str, str]) -> Mapping[str, str]:
    for key in keys:
        if not key.lower().startswith("numa."):
            raise ValueError(f"'{key}' is not a numa.* key; this field sets nothing else")
        if key.lower() in _own_fields():
            raise ValueError(f"'{key}' has its own field: use {_own_fields()[key.lower()]}")
    return keys


def _key_value(value: object) -> object:
    """An extraConfig value is text, whatever type YAML gives it."""
    if isinstance(value, bool):
        return str(value).upper()
    return str(value) if isinstance(value, int) else value


NumaKeys = Annotated[
    Mapping[str, Annotated[str, BeforeValidator(_key_value), Field(min_length=1)]], AfterValidator(_numa_keys)
]


def _plain(value: object) -> object:
    """Plain lists and dicts; a YAML reader's own have comments and lines."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


Latency = Literal["keep", "low", "normal", "medium", "high"]


@dataclass(frozen=True)
class SetsVmSettings:
    """The settings of the VM that a field becomes; `short` is its name in a crossing's arms: `1x16 mhz=full`.

    Not `computed`: the field's value is the one setting's, `auto` and `none` are its "not set". `seen` is
    where a boot shows it besides vSphere's read-back.
    """

    short: str
    settings: tuple[str, ...]
    computed: bool = False
    seen: str = ""

    @property
    def since(self) -> Since | None:
        """What the VM needs for it; None: every release has it, or another setting."""
        spec = None if self.computed else TYPED.get(self.settings[0])
        return spec.since if spec else None


@dataclass(frozen=True)
class OnlyInRuns:
    """A field that is set on SQL Server or its statements, which only a run sets and restores."""

    short: str
    what: str
    seen: str = ""


_NODES = "memory nodes"


class PhysicalCores(Strict):
    """One logical CPU for each physical core, so that no two vCPUs share a core."""

    physical_cores: Literal["fewest"] | NodeList = Field(
        default="fewest",
        description=(
            "`fewest`: as few host NUMA nodes as can hold the VM; or the nodes to use, filled evenly."
        ),
    )
    spare: int = Field(
        default=0, ge=0, le=64, description="Cores beyond the vCPUs, for the VM's other work (rule A05)."
    )


class ArmSettings(Strict):
    """What an arm sets on the VM besides its topology. `keep` leaves the VM's own value."""

    affinity: Annotated[
        Literal["keep", "none", "physical_cores"] | PhysicalCores | CpuList,
        SetsVmSettings("cpus", ("cpuAffinity",), computed=True),
    ] = Field(
        default="keep",
        description=(
            "CPU affinity: `none` clears it. `physical_cores` pins to one logical CPU per physical "
            "core, on as few host NUMA nodes as possible; `{physical_cores: [0, 1], spare: 1}` names "
            "the nodes and adds a core for the VM's other work. A list names logical CPUs of the host."
        ),
    )
    numa_node_affinity: Annotated[
        Literal["keep", "none"] | NodeList, SetsVmSettings("nodes", ("numa.nodeAffinity",))
    ] = Field(
        default="keep",
        description=(
            "numa.nodeAffinity: the host NUMA nodes that the VM may use. Unlike CPU affinity, it "
            "leaves the VM under ESXi's NUMA scheduler. `none` removes the key."
        ),
    )
    memory_affinity: Annotated[
        Literal["keep", "none"] | NodeList, SetsVmSettings("memnodes", ("memoryAffinity",))
    ] = Field(
        default="keep",
        description=(
            "Experimental: host NUMA nodes to take memory from. Deprecated since vSphere 6.0. Accepted "
            "only if it reads back; vnuma cannot tell whether ESXi honours it. `none` clears it."
        ),
    )
    memory_mb: Annotated[Literal["keep"] | MemorySize, SetsVmSettings("mb", ("memoryMB",))] = Field(
        default="keep", description="Memory size of the VM in MB, a multiple of 4."
    )
    memory_reservation: Annotated[
        Literal["keep", "none", "locked"] | Megabytes,
        SetsVmSettings("reserved", ("memoryReservation", "memoryReservationLockedToMax"), computed=True),
    ] = Field(
        default="keep",
        description="`locked` reserves all memory, whatever its size; a number reserves that many MB.",
    )
    cpu_reservation: Annotated[
        Literal["keep", "none", "full"] | Megahertz, SetsVmSettings("mhz", ("cpuReservation",), computed=True)
    ] = Field(
        default="keep",
        description="`full` reserves vCPUs times the host's clock; a number reserves that many MHz.",
    )
    latency_sensitivity: Annotated[Latency, SetsVmSettings("latency", ("latencySensitivity",))] = Field(
        default="keep",
        description=(
            "`high` gives each vCPU its own core; it needs `memory_reservation: locked` and "
            "`cpu_reservation: full`."
        ),
    )
    cpu_hot_add: Annotated[Switch, SetsVmSettings("hotadd", ("cpuHotAddEnabled",), seen=_NODES)] = Field(
        default="keep", description="CPU hot-add. When on, it hides vNUMA (see expose_vnuma_on_hot_add)."
    )
    expose_vnuma_on_hot_add: Annotated[
        Switch, SetsVmSettings("expose", ("exposeVnumaOnCpuHotadd",), seen=_NODES)
    ] = Field(
        default="keep",
        description=(
            "ESXi 8, hardware 20: virtualNuma.exposeVnumaOnCpuHotadd, which shows vNUMA despite CPU hot-add."
        ),
    )
    cores_per_numa_node: Annotated[
        Literal["keep", "auto"] | Count, SetsVmSettings("pernode", ("coresPerNumaNode",), seen=_NODES)
    ] = Field(
        default="keep",
        description=(
            "ESXi 8, hardware 20: virtualNuma.coresPerNumaNode, the vCPUs of a vNUMA node. It must "
            "divide the vCPUs and be a multiple or divisor of cores per socket; otherwise the VM would "
            "not power on."
        ),
    )
    max_per_virtual_node: Annotated[
        Literal["keep", "auto"] | Count, SetsVmSettings("max", (esxi.MAX_PER_NODE,), seen=_NODES)
    ] = Field(
        default="keep",
        description=(
            "numa.vcpu.maxPerVirtualNode: the largest number of vCPUs in a vNUMA node. `auto` removes the "
            "key."
        ),
    )
    numa_vcpu_min: Annotated[
        Literal["keep", "auto"] | Count, SetsVmSettings("min", (esxi.MINIMUM,), seen=_NODES)
    ] = Field(
        default="keep",
        description=(
            "numa.vcpu.min: the smallest number of vCPUs that gets vNUMA nodes. `auto` removes the key "
            "(ESXi's default is 9)."
        ),
    )
    prefer_ht: Annotated[AutoSwitch, SetsVmSettings("ht", (esxi.PREFER_HT,), seen=_NODES)] = Field(
        default="keep",
        description=(
            "numa.vcpu.preferHT: count threads, not cores, when fitting the VM into a node. `auto` removes "
            "the key."
        ),
    )
    follow_cores_per_socket: Annotated[
        AutoSwitch, SetsVmSettings("follow", (esxi.FOLLOW,), computed=True, seen=_NODES)
    ] = Field(
        default="auto",
        description=(
            "numa.vcpu.followcorespersocket. `auto` turns it on where ESXi would otherwise ignore "
            "cores per socket (6.5 and later). `off` removes the key: on those releases cores per "
            "socket then has no effect on vNUMA."
        ),
    )
    numa_autosize: Annotated[
        Literal["clear", "keep"],
        SetsVmSettings("stored", (esxi.AUTOSIZE_COOKIE, esxi.AUTOSIZE_MAX), computed=True, seen=_NODES),
    ] = Field(
        default="clear",
        description=(
            "The keys numa.autosize.cookie and numa.autosize.vcpu.maxPerVirtualNode freeze the layout "
            "of an earlier power-on. `clear` removes them; they are restored afterwards."
        ),
    )
    soft_numa: Annotated[
        Switch,
        OnlyInRuns("soft", "ALTER SERVER CONFIGURATION SET SOFTNUMA", "`sys.configurations`, SQL CPU nodes"),
    ] = Field(
        default="keep",
        description=(
            "SQL Server's automatic soft-NUMA (2016 and later), a setting of the whole instance: switched "
            "before the power-cycle that brings it about, and restored after the run. Needs ALTER SETTINGS."
        ),
    )
    maxdop: Annotated[
        Literal["keep"] | Annotated[int, Field(ge=0, le=64)],
        OnlyInRuns("dop", "a hint on every statement", "the statement's plan, `last_dop` of each execution"),
    ] = Field(
        default="keep", description="MAXDOP hint on every statement of this arm; `keep` uses the workload's."
    )
    numa: Annotated[NumaKeys, SetsVmSettings("numa", ("numa.*",), computed=True, seen=_NODES)] = Field(
        default={},
        description=(
            "Any other numa.* key, as in `{numa.consolidate: FALSE}`; `auto` removes a key. Keys with "
            "their own field are refused here."
        ),
    )


class Arm(ArmSettings):
    """One configuration under test."""

    topology: Annotated[
        TopologyField,
        SetsVmSettings(
            "topology",
            ("numCPUs", "numCoresPerSocket"),
            computed=True,
            seen="SQL Server's sockets (2016 SP2)",
        ),
    ] = Field(
        description=(
            "Sockets x cores per socket, as in `2x8`. `auto` lets ESXi 8 (hardware 20) choose cores "
            "per socket at power-on. `keep` is for targets that are measured as they are, without a vCenter."
        )
    )
    vcpus: Annotated[
        Count | None, SetsVmSettings("vcpus", ("numCPUs",), computed=True, seen="SQL Server's CPUs")
    ] = Field(default=None, le=768, description="vCPUs of this arm, if they differ from the study's.")
    name: str = Field(
        default="", description="Name in tables and charts; the topology by default.", max_length=40
    )
    vnuma_nodes: Annotated[
        int | None,
        SetsVmSettings(
            "vnuma",
            ("coresPerNumaNode", esxi.FOLLOW, esxi.MAX_PER_NODE, esxi.MINIMUM),
            computed=True,
            seen=_NODES,
        ),
    ] = Field(
        default=None,
        ge=1,
        description=(
            "How many vNUMA nodes the guest must see for a cell of this arm to count. Without it, any "
            "number that the release's rules predict counts, including uncertain readings."
        ),
    )

    workload: Annotated[
        Annotated[Mapping[str, Any], BeforeValidator(_plain)],
        OnlyInRuns("with", "fields of the study's workload"),
    ] = Field(
        default={},
        description=(
            "Fields of the study's workload that this arm sets differently, as in `{placement: "
            "remote}`. Only some may differ: each workload's page in docs/workloads names its factors."
        ),
    )

    @property
    def vcpu_count(self) -> int | None:
        """The arm's number of vCPUs; None where only the study or the VM has it."""
        return self.topology.vcpus if isinstance(self.topology, Topology) else self.vcpus

    @property
    def cores_per_socket(self) -> int | None:
        """Cores per socket; None for automatic."""
        return self.topology.cores_per_socket if isinstance(self.topology, Topology) else None

    @property
    def label(self) -> str:
        """The arm's name in tables."""
        return self.name or str(self.topology)


def declared() -> Mapping[str, SetsVmSettings | OnlyInRuns]:
    """What each field of an arm sets, by field; only the name sets nothing."""
    found = {name: _declared(field.metadata) for name, field in Arm.model_fields.items()}
    return {name: item for name, item in found.items() if item}


def short_name(field: str) -> str:
    """A field's name in the names of arms; its own name unless another is declared."""
    item = declared().get(field)
    return item.short if item else field


def only_in_runs() -> tuple[str, ...]:
    """The fields of an arm that are not settings of the VM."""
    return tuple(name for name, item in declared().items() if isinstance(item, OnlyInRuns))


def _declared(metadata: Iterable[object]) -> SetsVmSettings | OnlyInRuns | None:
    return next((item for item in metadata if isinstance(item, SetsVmSettings | OnlyInRuns)), None)


@cache
def _own_fields() -> Mapping[str, str]:
    """extraConfig keys that have a field of their own: the two would overwrite each other."""
    owned = {
        setting.lower(): name
        for name in ArmSettings.model_fields
        if isinstance(item := _declared(ArmSettings.model_fields[name].metadata), SetsVmSettings)
        for setting in item.settings
        if is_extra_config(setting) and name != "numa"
    }
    return owned | {"numa.vcpu.corespernode": "cores_per_numa_node"}
