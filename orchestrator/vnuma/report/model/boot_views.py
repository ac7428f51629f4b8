"""The sides of each boot next to each other: intended, predicted, vSphere, guest, SQL Server's start, log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Attempt, Vm

_VSPHERE = {
    "numCPUs": "vcpus",
    "numCoresPerSocket": "cores_per_socket",
    "autoCoresPerSocket": "auto_cores_per_socket",
    "coresPerNumaNode": "cores_per_numa_node",
    "autoCoresPerNumaNode": "auto_cores_per_numa_node",
    "exposeVnumaOnCpuHotadd": "expose_vnuma_on_cpu_hotadd",
    "cpuHotAddEnabled": "cpu_hot_add",
    "cpuAffinity": "cpu_affinity",
    "memoryMB": "memory_mb",
}
_GUEST = ("vcpus", "sockets", "cores_per_socket", "numa_nodes", "sql_cpu_nodes", "soft_numa")
_PREDICTED = ("vnuma_nodes", "node_sizes", "alternatives", "confidence", "because")


def boots_of(loaded: LoadedRun, vm: Vm) -> list[dict[str, Any]]:
    """Every attempt of a VM whose boot was looked at, valid or not, in the order run."""
    return [_boot(item) for item in loaded.attempts_of(vm) if isinstance(item.effective, Mapping)]


def _boot(attempt: Attempt) -> dict[str, Any]:
    effective = _mapping(attempt.effective)
    intended = _mapping(attempt.intended)
    vsphere = _mapping(effective.get("vsphere"))
    return {
        "block": attempt.block,
        "label": attempt.label,
        "arm": attempt.arm,
        "attempt": attempt.number,
        "outcome": None if attempt.outcome is None else str(attempt.outcome),
        "intended": {name: intended.get(name) for name in ("topology", "vnuma_nodes")},
        "predicted": _some(attempt.predicted, _PREDICTED),
        "vsphere": {
            **{_VSPHERE[name]: value for name, value in vsphere.items() if name in _VSPHERE},
            "extra_config": _pairs({key: text for key, text in vsphere.items() if key.startswith("numa.")}),
        },
        "guest": _some(effective.get("guest"), _GUEST),
        "errorlog": effective.get("errorlog"),
        "log": _log(effective.get("log")),
        "mismatches": effective.get("mismatches", []),
        "not_evaluated": effective.get("not_evaluated", []),
        "notes": effective.get("notes", []),
    }


def _log(document: object) -> dict[str, Any] | None:
    if not isinstance(document, Mapping):
        return None
    return {**document, "stored": _pairs(_mapping(document.get("stored")))}


def _pairs(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Keys of ESXi's own as values: the document's own keys are its schema."""
    return [{"key": key, "value": value} for key, value in settings.items()]


def _some(document: object, names: tuple[str, ...]) -> dict[str, Any] | None:
    return {name: document.get(name) for name in names} if isinstance(document, Mapping) else None


def _mapping(document: object) -> Mapping[str, Any]:
    return document if isinstance(document, Mapping) else {}
