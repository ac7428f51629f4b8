"""Read an RVTools export as an estate, listing what it lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from vnuma.domain.vm.estate import Estate, Unseen
from vnuma.errors import InputError, reading
from vnuma.estate.design_vm import bounded_bytes, decoded
from vnuma.estate.rvtools_hosts import Hosts, read_hosts
from vnuma.estate.rvtools_vms import read_vms
from vnuma.estate.table import csv_tables, has_rvtools_headers
from vnuma.estate.workbook import Sheet, Workbook, read_workbook

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
        "size": ("Size MiB", "Size MB", "Size"),
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
    "vMetaData": {
        "version": ("RVTools version", "RVTools major version"),
        "made": ("xlsx creation datetime",),
    },
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
        clusters=tuple(hosts.with_memory(vms).clusters()),
        unseen=(*unseen, *hosts.unseen, *lost),
    )


def _open(path: Path) -> tuple[Mapping[str, Sheet], list[Unseen]]:
    """The sheets; missing ones are empty, and named among what was not seen."""
    book = _csv_book(path) if path.suffix.lower() == ".csv" else read_workbook(path, COLUMNS)
    unseen = []
    for name, aliases in COLUMNS.items():
        found = book.sheets.get(name)
        if found is None:
            unseen += [] if name in _OPTIONAL else [Unseen("sheet", name, "the export has no such sheet")]
            continue
        unseen += [
            Unseen("column", f"{name}: {aliases[column][0]}", "the sheet has no such column")
            for column in WORTH_NAMING.get(name, ())
            if column not in found.columns
        ]
    sheets = {name: book.sheets.get(name) or Sheet(name, {}) for name in COLUMNS}
    info = sheets["vInfo"].columns
    missing = [COLUMNS["vInfo"][column][0] for column in _NEEDED if column not in info]
    if missing:
        has = ", ".join(book.names) or "no sheets"
        raise InputError(
            f"{path} cannot be checked as an RVTools export: its sheet vInfo lacks "
            f"{', '.join(missing)} (the file has {has}).",
            fix="Export all tabs to xlsx in RVTools (File, Export all to xlsx).",
        )
    return sheets, unseen


_CSV = re.compile(r"(.*tab)vInfo\.csv", re.IGNORECASE)
"""RVTools_tabvInfo.csv, as `RVTools -c ExportAll2csv` names it; the other sheets are beside it."""
_MOST_BYTES = 64_000_000


def is_rvtools_csv(path: Path) -> bool:
    """Whether this is the sheet vInfo of an export as CSV."""
    if path.suffix.lower() != ".csv":
        return False
    with reading(path), path.open("rb") as file:
        first = decoded(file.read(_HEAD)).partition("\n")[0]
    return bool(_CSV.fullmatch(path.name)) or has_rvtools_headers(first)


_HEAD = 16_384


def _csv_book(path: Path) -> Workbook:
    """The sheets as files of their own; those beside vInfo if they have RVTools' names."""
    named = _CSV.fullmatch(path.name)
    files = {"vInfo": path}
    for name in COLUMNS if named else ():
        beside = path.with_name(f"{named[1]}{name}.csv") if named else path
        files |= {name: beside} if beside.is_file() and name not in files else {}
    sheets = {name: _csv_sheet(file, name) for name, file in files.items()}
    return Workbook(tuple(files), sheets)


def _csv_sheet(path: Path, name: str) -> Sheet:
    text = decoded(bounded_bytes(path, _MOST_BYTES, "a sheet of RVTools"))
    found = (Sheet.of(name, [cells for _, cells in rows], COLUMNS[name]) for rows in csv_tables(text) if rows)
    return max(found, key=lambda sheet: len(sheet.columns), default=Sheet(name, {}))
