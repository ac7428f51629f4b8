"""RVTools exports written for tests: sheets of dictionaries, as rows by header."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook

Rows = Sequence[Mapping[str, Any]]


def write(path: Path, sheets: Mapping[str, Rows]) -> Path:
    """A workbook whose sheets have a header row of every key."""
    book = Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        headers = list(dict.fromkeys(key for row in rows for key in row))
        sheet.append(headers)
        for row in rows:
            sheet.append([row.get(header) for header in headers])
    book.save(path)
    return path


def rewrite(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """The workbook with one of its parts changed: `xl/worksheets/sheet1.xml` is its first sheet."""
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    parts[part] = change(parts.get(part, b""))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in parts.items():
            book.writestr(name, content)
    return path


def export(vms: int = 3, hosts: int = 2) -> dict[str, list[dict[str, Any]]]:
    """The sheets of a small export, as version 4 writes them."""
    common = [
        {
            "VM": f"vm{n}",
            "Host": f"esx{n % hosts}",
            "Cluster": "cl",
            "VM ID": f"vm-{n}",
            "VM UUID": f"uuid-{n}",
            "VI SDK Server": "vcsa01",
            "VI SDK UUID": "vc-uuid",
        }
        for n in range(vms)
    ]
    return {
        "vInfo": [
            row
            | {
                "Powerstate": "poweredOn",
                "SMBIOS UUID": f"bios-{row['VM UUID']}",
                "Template": False,
                "Connection state": "connected",
                "CPUs": 16,
                "Memory": 65536,
                "HW version": "vmx-19",
                "Folder": "Prod/SQL",
                "Datacenter": "DC1",
                "Latency Sensitivity": "normal",
                "OS according to the configuration file": "Microsoft Windows Server 2019 (64-bit)",
            }
            for row in common
        ],
        "vCPU": [
            row
            | {
                "CPUs": 16,
                "Sockets": 4,
                "Cores p/s": 4,
                "Hot Add": row["VM"] == "vm1",
                "Numa Hotadd Exposed": False,
                "Reservation": 0,
            }
            for row in common
        ],
        "vMemory": [
            row | {"Size MiB": 65536, "Memory Reservation Locked To Max": True, "Reservation": 65536}
            for row in common
        ],
        "vHost": [
            {
                "Host": f"esx{n}",
                "Datacenter": "DC1",
                "Cluster": "cl",
                "CPU Model": "Intel(R) Xeon(R) Gold 6230",
                "# CPU": 2,
                "Cores per CPU": 20,
                "# Cores": 40,
                "HT Active": True,
                "# Memory": 524288,
                "Host Power Policy": "High performance" if n else "Balanced",
                "ESX Version": "VMware ESXi 7.0.3 build-21930508",
                "Vendor": "Dell Inc.",
                "Model": "PowerEdge R740",
                "VI SDK Server": "vcsa01",
            }
            for n in range(hosts)
        ],
        "vCluster": [
            {
                "Name": "cl",
                "DRS enabled": True,
                "DRS default VM behavior": "fullyAutomated",
                "VI SDK Server": "vcsa01",
            }
        ],
        "vMetaData": [{"RVTools version": "4.4.1"}],
    }
