"""Read an RVTools export as an estate, listing what it lacks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from vnuma.checks.facts import EXTRA_CONFIG, HOST_OPTIONS
from vnuma.domain.topology.release import EXPOSE, hardware_version_of
from vnuma.domain.vm.estate import Estate, EstateVm, NotShown, Unseen, running_memory
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, NumaNode, Release, VmFacts
from vnuma.domain.vm.server import windows_of_tools
from vnuma.domain.vm.setting import Power, Value
from vnuma.errors import InputError, reading
from vnuma.estate.design_vm import MOST_CPUS, bounded_bytes, decoded
from vnuma.estate.table import csv_tables, has_rvtools_headers, read_table
from vnuma.estate.workbook import Row, Sheet, read_workbook, sheet_key, sheet_names

_VM_KEYS = {
    "vm": ("VM", "VM Name", "VMName"),
    "id": ("VM ID", "VMRef", "ObjectID"),
    "uuid": ("VM UUID", "UUID"),
    "host": ("Host",),
    "server": ("VI SDK Server", "VISDKServer"),
}

# The columns used, with their headers in RVTools 3.x and 4.x, and the internal names that its command line
# writes (vInfoVMName). tools/rvtools_doc.py lists them all.
COLUMNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vInfo": {
        **_VM_KEYS,
        "power": ("Powerstate", "Power State"),
        "template": ("Template",),
        "placeholder": ("SRM Placeholder", "SRMPlaceHolder"),
        "connection": ("Connection state", "ConnectionState"),
        "cpus": ("CPUs", "# CPUs", "NumCPU"),
        "memory": ("Memory", "Memory MB", "Memory MiB"),
        "latency": ("Latency Sensitivity",),
        "hardware": ("HW version", "HWVersion", "VM Version"),
        "folder": ("Folder",),
        "datacenter": ("Datacenter", "DataCenter"),
        "cluster": ("Cluster",),
        "os": ("OS according to the configuration file", "OS"),
        "os_tools": ("OS according to the VMware Tools", "OSTools"),
        "vcenter": ("VI SDK UUID", "VISDKUUID"),
        "smbios": ("SMBIOS UUID",),
    },
    "vCPU": {
        **_VM_KEYS,
        "cpus": ("CPUs", "# CPUs"),
        "sockets": ("Sockets",),
        "per_socket": ("Cores p/s", "Cores per socket"),
        "hot_add": ("Hot Add", "HotAdd"),
        "exposed": ("Numa Hotadd Exposed",),
        "reservation": ("Reservation",),
        "limit": ("Limit",),
    },
    "vMemory": {
        **_VM_KEYS,
        "locked": ("Memory Reservation Locked To Max", "Reservation Locked To Max"),
        "reservation": ("Reservation",),
        "limit": ("Limit",),
    },
    "vHost": {
        "host": ("Host", "Name"),
        "datacenter": ("Datacenter",),
        "cluster": ("Cluster",),
        "model_cpu": ("CPU Model",),
        "speed": ("Speed", "CpuMhz"),
        "packages": ("# CPU", "#CPU", "NumCPU"),
        "per_package": ("Cores per CPU",),
        "cores": ("# Cores", "#Cores", "NumCpuCores"),
        "ht": ("HT Active",),
        "memory": ("# Memory", "#Memory", "Memory", "MemorySize"),
        # Not "Current CPU power man. policy", which is the hardware's technology, such as ACPI P-states.
        "policy": ("Host Power Policy",),
        "version": ("ESX Version", "ESXVersion", "FullName"),
        "evc": ("Current EVC", "CurrentEVC"),
        "vendor": ("Vendor",),
        "model": ("Model",),
        "bios": ("BIOS Version",),
        "server": ("VI SDK Server", "VISDKServer"),
    },
    "vCluster": {
        "name": ("Name", "Cluster"),
        "drs": ("DRS enabled", "DRSEnabled"),
        "behavior": ("DRS default VM behavior",),
        "server": ("VI SDK Server", "VISDKServer"),
    },
    "vMetaData": {"version": ("RVTools version", "RVTools major version")},
}

_OPTIONAL = {"vMetaData"}
_NEEDED = ("vm", "cpus", "memory")
WORTH_NAMING: Mapping[str, tuple[str, ...]] = {
    "vInfo": ("power", "hardware", "host"),
    "vCPU": ("per_socket", "hot_add", "exposed"),
    "vMemory": ("locked", "reservation"),
    "vHost": ("packages", "cores", "ht", "memory", "policy", "version"),
    "vCluster": ("drs",),
}


def read_rvtools(path: Path) -> Estate:
    """Read an export of RVTools: an .xlsx, or vInfo's .csv with its neighbours. Raises InputError for another
    file, or one without readable VMs.
    """
    sheets, unseen = _open(path)
    hosts: Hosts = read_hosts(sheets)
    vms, lost = read_vms(sheets, hosts)
    metadata = next(iter(sheets["vMetaData"]), None)
    release = metadata.text("version") if metadata else ""
    return Estate(
        source=path.name,
        kind="rvtools",
        read_at=datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        product=f"RVTools {release}".strip(),
        version="",
        vms=tuple(vms),
        clusters=tuple(hosts.clusters(vms)),
        unseen=(*unseen, *hosts.unseen, *lost),
    )


def _open(path: Path) -> tuple[Mapping[str, Sheet], list[Unseen]]:
    """The sheets; missing ones are empty, and named among what was not seen."""
    names, found_sheets = _csv_book(path) if path.suffix.lower() == ".csv" else read_workbook(path, COLUMNS)
    unseen = []
    for name, aliases in COLUMNS.items():
        found = found_sheets.get(name)
        if found is None:
            unseen += [] if name in _OPTIONAL else [Unseen("sheet", name, "not exported; use Export all")]
            continue
        unseen += [
            Unseen("column", f"{name}: {aliases[column][0]}", "the sheet has no such column")
            for column in WORTH_NAMING.get(name, ())
            if column not in found.columns
        ]
    sheets = {name: found_sheets.get(name) or Sheet(name, {}) for name in COLUMNS}
    info = sheets["vInfo"].columns
    missing = [COLUMNS["vInfo"][column][0] for column in _NEEDED if column not in info]
    if missing:
        has = ", ".join(names) or "no sheets"
        raise InputError(
            f"{path} cannot be checked as an RVTools export: its sheet vInfo lacks "
            f"{', '.join(missing)} (the file has {has}).",
            fix="Export all tabs to xlsx in RVTools (File, Export all to xlsx).",
        )
    return sheets, unseen


_CSV = re.compile(r"(.*tab)vInfo\.csv", re.IGNORECASE)
"""RVTools_tabvInfo.csv, as `RVTools -c ExportAll2csv` names it; the other sheets are beside it."""
_MOST_BYTES = 64_000_000


def read_sheets(path: Path) -> Estate:
    """A workbook or CSV file: an export of RVTools if it has the sheet vInfo, else a design table. Raises
    InputError.
    """
    return read_rvtools(path) if path.is_file() and _has_vinfo(path) else read_table(path)


def _has_vinfo(path: Path) -> bool:
    if path.suffix.lower() not in {".csv", ".tsv"}:
        return "vinfo" in map(sheet_key, sheet_names(path))
    with reading(path), path.open("rb") as file:
        first = decoded(file.read(_HEAD)).partition("\n")[0]
    return bool(_CSV.fullmatch(path.name)) or has_rvtools_headers(first)


_HEAD = 16_384


def _csv_book(path: Path) -> tuple[list[str], dict[str, Sheet]]:
    """The sheets as files of their own; those beside vInfo if they have RVTools' names."""
    named = _CSV.fullmatch(path.name)
    files = {"vInfo": path}
    for name in COLUMNS if named else ():
        beside = path.with_name(f"{named[1]}{name}.csv") if named else path
        files |= {name: beside} if beside.is_file() and name not in files else {}
    sheets = {name: _csv_sheet(file, name) for name, file in files.items()}
    return list(files), sheets


def _csv_sheet(path: Path, name: str) -> Sheet:
    text = decoded(bounded_bytes(path, _MOST_BYTES, "a sheet of RVTools"))
    found = (Sheet.of(name, [cells for _, cells in rows], COLUMNS[name]) for rows in csv_tables(text) if rows)
    return max(found, key=lambda sheet: len(sheet.columns), default=Sheet(name, {}))


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
_Find = Callable[[Row], Row | None]


def _limit(row: Row, column: str) -> Value:
    """A limit in MHz or MB; -1 means none in vSphere and its exports."""
    return -1 if row.text(column) in {"-1", "-1.0"} else row.number(column)


_SOURCES: tuple[tuple[str, str, str, Callable[[Row, str], Value]], ...] = (
    ("numCPUs", "vInfo", "cpus", Row.number),
    ("memoryMB", "vInfo", "memory", Row.number),
    ("latencySensitivity", "vInfo", "latency", lambda row, column: row.text(column).lower() or None),
    ("numCoresPerSocket", "vCPU", "per_socket", Row.number),
    ("cpuHotAddEnabled", "vCPU", "hot_add", Row.truth),
    ("exposeVnumaOnCpuHotadd", "vCPU", "exposed", Row.truth),
    ("cpuReservation", "vCPU", "reservation", Row.number),
    ("cpuLimit", "vCPU", "limit", _limit),
    ("memoryReservationLockedToMax", "vMemory", "locked", Row.truth),
    ("memoryReservation", "vMemory", "reservation", Row.number),
    ("memoryLimit", "vMemory", "limit", _limit),
)
"""Each setting with its sheet and column, and how the cell is read."""


def read_vms(sheets: Mapping[str, Sheet], hosts: Hosts) -> tuple[list[EstateVm], list[Unseen]]:
    """Every VM that is not a template; unreadable ones with the reason."""
    others = {name: _partners(sheets[name], sheets["vInfo"]) for name in ("vCPU", "vMemory")}
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
    for setting, sheet, column, _ in _SOURCES:
        if not sheets[sheet].columns:
            reasons[setting] = f"the export has no sheet {sheet}"
        elif column not in sheets[sheet].columns and setting != "numCoresPerSocket":
            why = f"the export's sheet {sheet} has no such column"
            reasons[setting] = _NOT_EXPORTED if setting == EXPOSE else why
    return reasons


def _settings(row: Row, others: Mapping[str, _Find]) -> tuple[dict[str, Value], dict[str, str]]:
    """The VM's known settings, and why the others are unknown."""
    rows: dict[str, Row | None] = {name: find(row) for name, find in others.items()}
    rows["vInfo"] = row
    settings: dict[str, Value] = {}
    missing: dict[str, str] = {}
    for setting, sheet, column, read in _SOURCES:
        partner = rows[sheet]
        value = read(partner, column) if partner else None
        if value is not None:
            settings[setting] = value
        else:
            why = f"has no {COLUMNS[sheet][column][0]} of the VM" if partner else "has no row for the VM"
            missing[setting] = f"the export's sheet {sheet} {why}"
    sockets = rows["vCPU"].number("sockets") if rows["vCPU"] else None
    vcpus = settings.get("numCPUs")
    if "numCoresPerSocket" not in settings and sockets and isinstance(vcpus, int) and sockets <= vcpus:
        settings["numCoresPerSocket"] = vcpus // sockets
    return settings, missing


def _partners(sheet: Sheet, info: Sheet) -> _Find:
    """Finds the sheet's row of a VM by its row in vInfo; None without one, or where several may be meant.

    Without the vCenter in both sheets it is found by a unique name, on its host if both show that.
    """
    with_server, with_host = (
        all(column in one.columns for one in (sheet, info)) for column in ("server", "host")
    )

    def keys(row: Row) -> list[_Key]:
        server, host = row.text("server") if with_server else "", row.text("host") if with_host else ""
        named = [("id", f"{server}/{row.text('id')}"), ("uuid", f"{server}/{row.text('uuid')}")]
        known = [(kind, value) for kind, value in named if not value.endswith("/")]
        return [*known, ("name", f"{server}/{host}/{row.text('vm')}")]

    rows: dict[_Key, Row | None] = {}
    for row in sheet:
        for key in keys(row):
            rows[key] = row if with_server or key not in rows else None
    return lambda vm: next((found for key in keys(vm) if (found := rows.get(key))), None)


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
        # Exports with both UUIDs have the instance's in "VM UUID"; of others it may be the BIOS's.
        instance_uuid=(row.text("smbios") and uuid) or row.text("id") or uuid or name,
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


ASSUMED = (
    "RVTools exports no NUMA nodes: one per socket is assumed, which is wrong with sub-NUMA clustering "
    "or node interleaving"
)

_VERSION = re.compile(r"([0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)(?:[^0-9]+([0-9]{5,12}))?")

# RVTools shows the policy's display name; rules use the short one.
_POLICIES = {
    "static": ("static", "high performance", "highperformance", "powerpolicy.static.name"),
    "dynamic": ("dynamic", "balanced", "powerpolicy.dynamic.name"),
    "low": ("low", "low power", "powerpolicy.low.name"),
    "custom": ("custom", "powerpolicy.custom.name"),
}


@dataclass(frozen=True)
class Hosts:
    """The hosts by vCenter and name, their clusters, and what could not be read."""

    by_name: Mapping[tuple[str, str], HostFacts]
    cluster_names: Mapping[str, tuple[str, str]]
    """Each host's cluster (vCenter, name), by the host's identifier."""
    drs: Mapping[tuple[str, str], bool | None]
    unread: Mapping[tuple[str, str], tuple[str, ...]]
    unseen: tuple[Unseen, ...]

    def find(self, server: str, name: str) -> HostFacts | None:
        """The host of that name at that vCenter. Where either sheet lacks the vCenter, the only one of that
        name.
        """
        found = self.by_name.get((server.lower(), name.lower()))
        if found:
            return found
        alike = self._alike.get(name.lower(), [])
        only = alike[0] if len(alike) == 1 else None
        return self.by_name[only] if only and not (server and only[0]) else None

    @cached_property
    def _alike(self) -> Mapping[str, list[tuple[str, str]]]:
        """The hosts of each name, at any vCenter."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key in self.by_name:
            found[key[1]].append(key)
        return found

    def clusters(self, vms: Iterable[EstateVm]) -> Iterator[ClusterFacts]:
        """Clusters with their hosts, and the memory of the VMs that run on each; a standalone host is a
        cluster of one.
        """
        members: dict[tuple[str, str], list[HostFacts]] = defaultdict(list)
        running = running_memory(vms)
        for named in self.by_name.values():
            host = replace(named, powered_on_mb=running[named.moid])
            cluster = self.cluster_names.get(host.moid)
            if cluster:
                members[cluster].append(host)
            else:
                yield ClusterFacts(host.moid, host.name, False, (host,))
        for (server, name), some in members.items():
            key = (server, name)
            moid = f"{server}/{name}"
            yield ClusterFacts(moid, name, self.drs.get(key), tuple(some), self.unread.get(key, ()))


def read_hosts(sheets: Mapping[str, Sheet]) -> Hosts:
    """Every host with processors, memory and release."""
    drs = {
        (row.text("server").lower(), row.text("name")): (row.truth("drs"), row.text("behavior") or None)
        for row in sheets["vCluster"]
    }
    named: dict[tuple[str, str], HostFacts] = {}
    clusters: dict[str, tuple[str, str]] = {}
    unread: dict[tuple[str, str], tuple[str, ...]] = {}
    unseen: list[Unseen] = []
    for row in sheets["vHost"]:
        server, name = row.text("server").lower(), row.text("host")
        cluster = (server, row.text("cluster"))
        enabled, behavior = drs.get(cluster, (None, None))
        host = _host(row, f"{server}/{name}", bool(enabled), behavior if enabled else None)
        if not isinstance(host, str) and "evc" in sheets["vHost"].columns:
            host = replace(host, evc_mode=row.text("evc"))
        if isinstance(host, str):
            unseen.append(Unseen("host", name, host))
            if cluster[1]:
                unread[cluster] = (*unread.get(cluster, ()), name)
            continue
        named[server, name.lower()] = host
        if cluster[1]:
            clusters[host.moid] = cluster
    if named:
        unseen.append(Unseen("host", "NUMA nodes", ASSUMED))
    return Hosts(named, clusters, {key: value[0] for key, value in drs.items()}, unread, tuple(unseen))


def _host(row: Row, moid: str, drs: bool, behavior: str | None) -> HostFacts | str:
    """The host, or why it cannot be read."""
    packages, memory = row.number("packages"), row.number("memory")
    cores = row.number("cores") or (packages or 0) * (row.number("per_package") or 0)
    version = _VERSION.search(row.text("version"))
    lacking = [
        what
        for what, there in (("sockets", packages), ("cores", cores), ("memory", memory), ("release", version))
        if not there
    ]
    if not (packages and cores and memory and version):
        return f"its row has no {', '.join(lacking)}"
    if not packages <= cores <= MOST_CPUS:
        return f"its row has {packages} sockets and {cores} cores, which no host can have"
    threads = cores * 2 if row.truth("ht") else cores
    size = threads // packages
    nodes = tuple(
        NumaNode(node, tuple(range(node * size, (node + 1) * size)), memory // packages)
        for node in range(packages)
    )
    return HostFacts(
        moid=moid,
        name=row.text("host"),
        release=Release(version[1], version[2] or ""),
        vendor=row.text("vendor"),
        model=row.text("model"),
        cpu_model=row.text("model_cpu"),
        bios=row.text("bios"),
        packages=packages,
        cores=cores,
        threads=threads,
        threads_used=row.truth("ht") or None,  # not active: off, or SCAv1
        memory_mb=memory,
        numa_nodes=nodes,
        mhz=row.number("speed") or 0,
        in_drs_cluster=drs,
        drs_default=behavior,
        numa_reported=False,
        node_memory_estimated=packages > 1,
        power_policy=_policy(row.text("policy")),
    )


def _policy(text: str) -> str | None:
    lowered = text.lower()
    return next((short for short, names in _POLICIES.items() if lowered in names), None)
