"""VMs of an RVTools export, from its sheets vInfo, vCPU and vMemory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vnuma.checks.subject import EXTRA_CONFIG, HOST_OPTIONS
from vnuma.domain.topology.release import EXPOSE, hardware_version_of
from vnuma.domain.vm.estate import EstateVm, NotShown, Unseen
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.server import windows_of_tools
from vnuma.domain.vm.setting import Power, Value
from vnuma.estate.rvtools_hosts import MOST_CPUS, Hosts
from vnuma.estate.workbook import Row, Sheet

_NOT_EXPORTED = NotShown("RVTools")
_NEVER = dict.fromkeys(
    (
        *("cpuAffinity", "memoryAffinity", "coresPerNumaNode", "autoCoresPerNumaNode", "autoCoresPerSocket"),
        *(EXTRA_CONFIG, HOST_OPTIONS),
    ),
    _NOT_EXPORTED,
)

_POWER = {"poweredon": Power.ON, "poweredoff": Power.OFF, "suspended": Power.SUSPENDED}

_OLDEST_KNOWN = 11
"""Hardware version of a VM of unknown host, for exports without that column."""

_SHOWN = 40
"""Most characters of a cell in a message."""

_Key = tuple[str, str]


@dataclass(frozen=True)
class _Source:
    """A setting's sheet and column, and how the cell is read."""

    setting: str
    sheet: str
    column: str
    read: Callable[[Row, str], Value]


def _limit(row: Row, column: str) -> Value:
    """A limit in MHz or MB; -1 means none in vSphere and its exports."""
    return -1 if row.text(column) in {"-1", "-1.0"} else row.number(column)


_SOURCES = (
    _Source("numCPUs", "vInfo", "cpus", Row.number),
    _Source("memoryMB", "vInfo", "memory", Row.number),
    _Source("latencySensitivity", "vInfo", "latency", lambda row, column: row.text(column).lower() or None),
    _Source("numCoresPerSocket", "vCPU", "per_socket", Row.number),
    _Source("cpuHotAddEnabled", "vCPU", "hot_add", Row.truth),
    _Source("exposeVnumaOnCpuHotadd", "vCPU", "exposed", Row.truth),
    _Source("cpuReservation", "vCPU", "reservation", Row.number),
    _Source("cpuLimit", "vCPU", "limit", _limit),
    _Source("memoryReservationLockedToMax", "vMemory", "locked", Row.truth),
    _Source("memoryReservation", "vMemory", "reservation", Row.number),
    _Source("memoryLimit", "vMemory", "limit", _limit),
)


def read_vms(sheets: Mapping[str, Sheet], hosts: Hosts) -> tuple[list[EstateVm], list[Unseen]]:
    """Every VM that is not a template; unreadable ones with the reason."""
    others = {name: _Partners(sheets[name], sheets["vInfo"]) for name in ("vCPU", "vMemory")}
    absent = _absent(sheets)
    vms: list[EstateVm] = []
    unseen: list[Unseen] = []
    shared: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
    for row in sheets["vInfo"]:
        if row.truth("template"):
            continue
        why = _unreadable(row)
        if why:
            unseen.append(Unseen("vm", row.text("vm"), why))
            continue
        host = hosts.find(row.text("server"), row.text("host"))
        settings, missing = _settings(row, others)
        reasons = {**missing, **absent} | ({} if host else {"host": _why_no_host(row, hosts)})
        reasons = {name: why for name, why in reasons.items() if name not in settings}
        kept = shared.setdefault(tuple(sorted(reasons.items())), reasons)  # VMs share few reasons
        guest = windows_of_tools("", row.text("os_tools") or row.text("os"))
        vms.append(EstateVm(_facts(row, host, settings), kept, guest=guest))
    return vms, unseen


def _unreadable(row: Row) -> str:
    connection = row.text("connection").lower()
    if connection in {"inaccessible", "invalid", "disconnected"}:
        return f"it was {connection} when RVTools ran"
    if row.truth("placeholder"):
        return "it is a placeholder of Site Recovery Manager, without a configuration of its own"
    for column, what in (("cpus", "CPUs"), ("memory", "memory")):
        if not row.number(column):
            return f"its {what} is {row.text(column)[:_SHOWN]!r}, not a number"
    if (row.number("cpus") or 0) > MOST_CPUS:
        return f"its CPUs are {row.number('cpus')}, more than any VM can have"
    return ""


def _absent(sheets: Mapping[str, Sheet]) -> dict[str, str]:
    """Settings that this export has for no VM, with the reason."""
    reasons: dict[str, str] = dict(_NEVER)
    for source in _SOURCES:
        sheet = sheets[source.sheet]
        if not sheet.columns:
            reasons[source.setting] = f"the export has no sheet {source.sheet}"
        elif source.column not in sheet.columns and source.setting != "numCoresPerSocket":
            why = f"the export's sheet {source.sheet} has no such column"
            reasons[source.setting] = _NOT_EXPORTED if source.setting == EXPOSE else why
    return reasons


def _settings(row: Row, others: Mapping[str, _Partners]) -> tuple[dict[str, Value], dict[str, str]]:
    """The VM's known settings, and why the others are unknown."""
    rows: dict[str, Row | None] = {name: partners.find(row) for name, partners in others.items()}
    rows["vInfo"] = row
    settings: dict[str, Value] = {}
    missing: dict[str, str] = {}
    for source in _SOURCES:
        partner = rows[source.sheet]
        value = source.read(partner, source.column) if partner else None
        if value is not None:
            settings[source.setting] = value
        else:
            why = "does not show it" if partner else "has no row for the VM"
            missing[source.setting] = f"the export's sheet {source.sheet} {why}"
    sockets = rows["vCPU"].number("sockets") if rows["vCPU"] else None
    vcpus = settings.get("numCPUs")
    if "numCoresPerSocket" not in settings and sockets and isinstance(vcpus, int) and sockets <= vcpus:
        settings["numCoresPerSocket"] = vcpus // sockets
    return settings, missing


class _Partners:
    """A sheet's rows, found by a VM's row in vInfo. Without the vCenter in both sheets, by unique names."""

    def __init__(self, sheet: Sheet, info: Sheet) -> None:
        self._with_server = all("server" in one.columns for one in (sheet, info))
        self._rows: dict[_Key, Row | None] = {}
        for row in sheet:
            for key in self._keys(row):
                self._rows[key] = row if self._with_server or key not in self._rows else None

    def find(self, vm: Row) -> Row | None:
        """The VM's row; None without one, or where several may be meant."""
        return next((found for key in self._keys(vm) if (found := self._rows.get(key))), None)

    def _keys(self, row: Row) -> list[_Key]:
        """Each name that a VM's row may use."""
        server = row.text("server") if self._with_server else ""
        named = [("id", f"{server}/{row.text('id')}"), ("uuid", f"{server}/{row.text('uuid')}")]
        keys = [(kind, value) for kind, value in named if not value.endswith("/")]
        return [*keys, ("name", f"{server}/{row.text('host')}/{row.text('vm')}")]


def _why_no_host(row: Row, hosts: Hosts) -> str:
    name = row.text("host")
    if not name:
        return "the VM has no host (orphaned)"
    return f"the export's sheet vHost does not show {name}" if hosts.by_name else "the export has no hosts"


def _facts(row: Row, host: HostFacts | None, settings: Mapping[str, Value]) -> VmFacts:
    name = row.text("vm")
    folder = [part for part in (row.text("datacenter"), "vm", *row.text("folder").split("/")) if part]
    uuid = row.text("uuid")
    return VmFacts(
        moid=row.text("id") or uuid or f"{row.text('host')}/{name}",
        name=name,
        path="/" + "/".join([*folder, name]),
        vcenter_uuid=row.text("vcenter") or row.text("server"),
        instance_uuid=uuid or row.text("id") or name,
        hardware_version=_hardware(row, host),
        guest_id="",
        guest_full_name=row.text("os_tools") or row.text("os"),
        power=_POWER.get(re.sub(r"[^a-z]", "", row.text("power").lower()), Power.OFF),
        host_moid=host.moid if host else "",
        host_name=row.text("host"),
        tools_running=bool(row.text("os_tools")),
        change_version="",
        settings=settings,
    )


def _hardware(row: Row, host: HostFacts | None) -> int:
    """The hardware version; without that column, what its host's ESXi gives new VMs."""
    digits = re.search(r"[0-9]{1,4}", row.text("hardware"))
    if digits:
        return int(digits[0])
    return hardware_version_of(host.release.version) if host else _OLDEST_KNOWN
