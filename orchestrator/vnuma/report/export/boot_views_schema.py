"""The part of the published schema that tells each boot from every side (`sides`)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class KeyValue(BaseModel):
    """A key of ESXi's own with its value."""

    key: str
    value: Any


class IntendedPart(BaseModel):
    """What the arm asks for."""

    topology: str | None
    vnuma_nodes: int | None = Field(description="Nodes that the guest must see; null: whatever is predicted.")


class PredictedPart(BaseModel):
    """What the release's rules give."""

    vnuma_nodes: int | None
    node_sizes: list[int] | None
    alternatives: list[int] | None
    confidence: str | None
    because: str | None


class VspherePart(BaseModel):
    """vSphere's read-back after the power-on; what a release does not have is null or absent."""

    vcpus: int | None = None
    cores_per_socket: int | None = None
    auto_cores_per_socket: bool | None = None
    cores_per_numa_node: int | None = None
    auto_cores_per_numa_node: bool | None = None
    expose_vnuma_on_cpu_hotadd: bool | None = None
    cpu_hot_add: bool | None = None
    cpu_affinity: list[int] | None = None
    memory_mb: int | None = None
    extra_config: list[KeyValue] = Field(description="numa.* keys.")


class GuestPart(BaseModel):
    """What SQL Server's views show in the guest."""

    vcpus: int | None
    sockets: int | None
    cores_per_socket: int | None
    numa_nodes: int | None = Field(description="Memory nodes: the guest's vNUMA nodes.")
    sql_cpu_nodes: int | None = Field(description="SQLOS nodes, soft-NUMA included.")
    soft_numa: str | None


class StartPart(BaseModel):
    """What SQL Server's error log says of its start."""

    sockets: int | None
    cores_per_socket: int | None
    logical_per_socket: int | None
    total: int | None
    using: int | None = Field(description="Logical processors that the licence lets it use.")
    node_cpus: list[int]
    soft_numa: bool
    manufacturer: str | None
    model: str | None


class LogPart(BaseModel):
    """What vmware.log of the boot says. Not used for the verdict."""

    source: str | None = Field(description="host: with a service ticket; vcenter: after power-off.")
    not_evaluated: str | None = Field(description="Why it is not evidence of this boot; null: it is.")
    vcpus: int | None = None
    vnuma_nodes: int | None = None
    node_sizes: list[int] | None = None
    physical_domains: int | None = Field(None, description="Parts placed on the host's NUMA nodes (PPD).")
    physical_sizes: list[int] | None = None
    forced_uma: bool | None = Field(None, description="CPU hot-add made it one node.")
    consolidation: int | None = None
    prefer_ht: int | None = None
    suggested_cores_per_socket: int | None = None
    stored: list[KeyValue] = Field(description="numa.autosize keys that the power-on stored.")


class BootPart(BaseModel):
    """One boot from every side."""

    block: int
    label: str
    arm: str
    attempt: int
    outcome: str | None
    intended: IntendedPart
    predicted: PredictedPart | None
    vsphere: VspherePart
    guest: GuestPart | None
    errorlog: StartPart | None = Field(description="null: it may not be read, or was not.")
    log: LogPart | None
    mismatches: list[str] = Field(description="Why the boot does not count for its arm.")
    not_evaluated: list[str]
    notes: list[str] = Field(description="Worth knowing; they decide nothing.")


class EffectivePart(BaseModel):
    """The boots of one VM, valid or not, in the order run."""

    vm: str
    boots: list[BootPart]
