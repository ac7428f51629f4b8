"""Each boot in the results document: intended, predicted, vSphere, guest, SQL Server's start, log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from pydantic import Field

from vnuma.report.export.parts import Part
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Attempt, Vm
from vnuma.words.bounded_json import mapping

AnyPart = TypeVar("AnyPart", bound=Part)

_VSPHERE = {
    "autoCoresPerNumaNode": "auto_cores_per_numa_node",
    "autoCoresPerSocket": "auto_cores_per_socket",
    "coresPerNumaNode": "cores_per_numa_node",
    "cpuAffinity": "cpu_affinity",
    "cpuHotAddEnabled": "cpu_hot_add",
    "exposeVnumaOnCpuHotadd": "expose_vnuma_on_cpu_hotadd",
    "memoryMB": "memory_mb",
    "numCPUs": "vcpus",
    "numCoresPerSocket": "cores_per_socket",
}


class KeyValue(Part):
    """An ESXi key with its value."""

    key: str
    value: Any


class IntendedPart(Part):
    """What the arm asks for."""

    topology: str | None
    vnuma_nodes: int | None = Field(description="Nodes that the guest must see; null: as predicted.")


class PredictedPart(Part):
    """What the release's rules give."""

    vnuma_nodes: int | None
    node_sizes: list[int] | None
    alternatives: list[int] | None
    confidence: str | None
    because: str | None


class VspherePart(Part):
    """vSphere's read-back after the power-on; what a release does not have is null or absent."""

    auto_cores_per_numa_node: bool | None = None
    auto_cores_per_socket: bool | None = None
    cores_per_numa_node: int | None = None
    cpu_affinity: list[int] | None = None
    cpu_hot_add: bool | None = None
    expose_vnuma_on_cpu_hotadd: bool | None = None
    memory_mb: int | None = None
    vcpus: int | None = None
    cores_per_socket: int | None = None
    extra_config: list[KeyValue] = Field(description="numa.* keys.")

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The stored values under the names of vSphere's API."""
        return cls(
            **{name: stored[theirs] for theirs, name in _VSPHERE.items() if theirs in stored},
            extra_config=_pairs({key: text for key, text in stored.items() if key.startswith("numa.")}),
        )


class GuestPart(Part):
    """What SQL Server's views show in the guest."""

    vcpus: int | None
    sockets: int | None
    cores_per_socket: int | None
    numa_nodes: int | None = Field(description="Memory nodes: the guest's vNUMA nodes.")
    sql_cpu_nodes: int | None = Field(description="SQLOS nodes, soft-NUMA included.")
    soft_numa: str | None


class StartPart(Part):
    """What SQL Server's error log says of its start."""

    cores_per_socket: int | None
    logical_per_socket: int | None
    manufacturer: str | None
    model: str | None
    node_cpus: list[int]
    sockets: int | None
    soft_numa: bool
    total: int | None
    using: int | None = Field(description="Logical processors that the licence allows.")


class LogPart(Part):
    """What vmware.log of the boot says. Not used for the verdict."""

    consolidation: int | None = None
    forced_uma: bool | None = Field(None, description="CPU hot-add made it one node.")
    node_sizes: list[int] | None = None
    not_evaluated: str | None = Field(description="Why it is not evidence of this boot; null: it is.")
    physical_domains: int | None = Field(None, description="Parts placed on the host's NUMA nodes (PPD).")
    physical_sizes: list[int] | None = None
    prefer_ht: int | None = None
    source: str | None = Field(description="host: with a service ticket; vcenter: after power-off.")
    stored: list[KeyValue] = Field(description="numa.autosize keys that the power-on stored.")
    suggested_cores_per_socket: int | None = None
    vcpus: int | None = None
    vnuma_nodes: int | None = None

    @classmethod
    def of(cls, stored: object) -> Self | None:
        """The stored part about the log, if any."""
        if not isinstance(stored, Mapping):
            return None
        return cls.model_validate({**stored, "stored": _pairs(mapping(stored.get("stored")))})


class BootPart(Part):
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
    notes: list[str] = Field(description="Informational.")

    @classmethod
    def of(cls, attempt: Attempt, effective: Mapping[str, Any]) -> Self:
        """One boot: `effective` is its stored document."""
        return cls.like(
            attempt,
            attempt=attempt.number,
            intended=_known(IntendedPart, mapping(attempt.intended)),
            predicted=_stored(PredictedPart, attempt.predicted),
            vsphere=VspherePart.of(mapping(effective.get("vsphere"))),
            guest=_stored(GuestPart, effective.get("guest")),
            errorlog=_stored(StartPart, effective.get("errorlog")),
            log=LogPart.of(effective.get("log")),
            mismatches=effective.get("mismatches", []),
            not_evaluated=effective.get("not_evaluated", []),
            notes=effective.get("notes", []),
        )


class EffectivePart(Part):
    """The boots of one VM, valid or not, in the order run."""

    vm: str
    boots: list[BootPart]

    @classmethod
    def of(cls, loaded: LoadedRun, vm: Vm) -> Self:
        """Every attempt of a VM whose boot was examined."""
        attempts = [(one, one.effective) for one in loaded.attempts_of(vm)]
        return cls(
            vm=vm.name,
            boots=[BootPart.of(one, seen) for one, seen in attempts if isinstance(seen, Mapping)],
        )


def _pairs(settings: Mapping[str, Any]) -> list[KeyValue]:
    """ESXi keys as values, since the document's own keys are its schema."""
    return [KeyValue(key=key, value=value) for key, value in settings.items()]


def _stored(part: type[AnyPart], document: object) -> AnyPart | None:
    return _known(part, document) if isinstance(document, Mapping) else None


def _known(part: type[AnyPart], document: Mapping[str, Any]) -> AnyPart:
    """The document's values; null for missing ones."""
    return part.model_validate({name: document.get(name) for name in part.model_fields})
