"""A VM's configuration, as the property collector returns it, into settings. Pure.

Typed values are normalised so that equal settings compare equal: a CPU set ascending, no affinity
as (), a switch that is not set as off, shares by level as a word and custom shares as a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vnuma.domain.setting import LEASE_PREFIX, TYPED, Value, is_evidence, is_governed

LEASE_KEY = f"{LEASE_PREFIX}run"

# One property path for each part of the configuration that settings are made of.
PATHS = (
    "config.hardware",
    "config.numaInfo",
    "config.cpuAffinity",
    "config.memoryAffinity",
    "config.cpuHotAddEnabled",
    "config.memoryHotAddEnabled",
    "config.memoryReservationLockedToMax",
    "config.memoryAllocation",
    "config.cpuAllocation",
    "config.latencySensitivity",
    "config.extraConfig",
)


def settings_of(values: Mapping[str, Any]) -> dict[str, Value]:
    """Every typed setting (None where this release has none), governed and evidence extraConfig keys."""
    hardware = values.get("config.hardware")
    numa = values.get("config.numaInfo")
    latency = values.get("config.latencySensitivity")
    typed: dict[str, Value] = {
        **dict.fromkeys(TYPED),
        "numCPUs": _field(hardware, "numCPU"),
        "numCoresPerSocket": _field(hardware, "numCoresPerSocket"),
        "autoCoresPerSocket": _field(hardware, "autoCoresPerSocket"),
        "memoryMB": _field(hardware, "memoryMB"),
        "coresPerNumaNode": _field(numa, "coresPerNumaNode") or None,
        "autoCoresPerNumaNode": _field(numa, "autoCoresPerNumaNode"),
        "exposeVnumaOnCpuHotadd": _field(numa, "vnumaOnCpuHotaddExposed"),
        "cpuHotAddEnabled": bool(values.get("config.cpuHotAddEnabled")),
        "memoryHotAddEnabled": bool(values.get("config.memoryHotAddEnabled")),
        "memoryReservationLockedToMax": bool(values.get("config.memoryReservationLockedToMax")),
        "cpuAffinity": _affinity(values.get("config.cpuAffinity")),
        "memoryAffinity": _affinity(values.get("config.memoryAffinity")),
        "latencySensitivity": None if latency is None else str(latency.level),
        **_allocation("memory", values.get("config.memoryAllocation")),
        **_allocation("cpu", values.get("config.cpuAllocation")),
    }
    extra = extra_config(values.get("config.extraConfig") or ())
    return typed | {key: text for key, text in sorted(extra.items()) if is_governed(key) or is_evidence(key)}


def extra_config(options: Iterable[Any]) -> dict[str, str]:
    """extraConfig as text by key; an empty value means that the key is not set."""
    return {option.key: str(option.value) for option in options if str(option.value)}


def _field(part: Any, name: str) -> Any:
    return None if part is None else getattr(part, name)


def _affinity(info: Any) -> tuple[int, ...]:
    return () if info is None else tuple(sorted(int(number) for number in info.affinitySet))


def _allocation(resource: str, info: Any) -> dict[str, Value]:
    """Reservation, limit (-1: none) and shares of memory (MB) or CPU (MHz)."""
    if info is None:
        return {}
    shares: Value = None
    if info.shares is not None:
        level = str(info.shares.level)
        shares = int(info.shares.shares) if level == "custom" else level
    return {
        f"{resource}Reservation": None if info.reservation is None else int(info.reservation),
        f"{resource}Limit": None if info.limit is None else int(info.limit),
        f"{resource}Shares": shares,
    }
