"""Defaults that rules assume where a source never shows a setting, and how a result says so."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from vnuma.checks.subject import EXTRA_CONFIG, HOST_OPTIONS
from vnuma.domain.topology.release import EXPOSE
from vnuma.domain.vm.setting import Value

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
def words(assumed: tuple[tuple[str, str], ...]) -> str:
    """`assumes default numa.* keys and affinity, not shown by RVTools`, from settings and their sources."""
    by_source: dict[str, dict[str, None]] = {}
    for name, source in assumed:
        by_source.setdefault(source, {})[_WORDS[name]] = None
    parts = [f"default {' and '.join(what)}, not shown by {source}" for source, what in by_source.items()]
    return f"assumes {'; '.join(parts)}" if parts else ""
