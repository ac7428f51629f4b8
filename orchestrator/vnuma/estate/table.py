"""A design table: one planned VM per row, in CSV, a workbook or YAML.

Columns are found by their English or German headers and read with their units; docs/check.md lists them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

from vnuma.domain.vm.estate import HOST_DECIDES, Declared, Estate, Unseen
from vnuma.errors import InputError
from vnuma.estate import design_vm
from vnuma.estate.table_row import KEYS, NOT_SAID, NOT_SHOWN, ContradictoryRow, vm_of_row
from vnuma.estate.workbook import Sheet, read_first_sheet

_MOST_BYTES = 20_000_000
_MOST_VMS = 20_000
_TOTALS = {"total", "totals", "sum", "grand total", "summe", "gesamt", "gesamtsumme"}
_TITLE_ROWS = 10
"""Most rows above the headers."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "name": (
        *("Name", "VM", "VM name", "Virtual machine", "Server", "Server name", "Hostname"),
        *("Virtuelle Maschine", "Servername", "Rechnername", "Computername", "Maschine"),
    ),
    "cpus": (
        *("vCPU", "vCPUs", "CPUs", "CPU", "num_cpus", "numCPUs", "NumCpu", "Cores", "Number of vCPUs"),
        *("Anzahl vCPU", "Anzahl vCPUs", "Anzahl CPUs", "Prozessoren", "Kerne", "Anzahl Kerne"),
    ),
    "per_socket": (
        *("Cores per socket", "cores_per_socket", "num_cores_per_socket", "Cores/socket", "Cores p/s"),
        *("numCoresPerSocket", "Number of cores per socket"),
        *("Kerne pro Sockel", "Kerne je Sockel", "Kerne/Sockel", "Cores pro Sockel", "Cores je Sockel"),
    ),
    "sockets": ("Sockets", "Virtual sockets", "Sockel", "Anzahl Sockel", "Virtuelle Sockel"),
    "topology": ("Topology", "Topologie", "Sockets x cores", "Sockel x Kerne"),
    "memory": (
        *("Memory", "Memory GB", "Memory GiB", "memory_gb", "RAM", "RAM GB", "RAM GiB", "Memory size"),
        *("Arbeitsspeicher", "Arbeitsspeicher GB", "Hauptspeicher", "Hauptspeicher GB", "Speicher GB"),
    ),
    "memory_mb": ("Memory MB", "Memory MiB", "memoryMB", "RAM MB", "RAM MiB", "Arbeitsspeicher MB"),
    "reservation": (
        *("Memory reservation", "memory_reservation", "Memory reserved", "RAM reservation", "Reservation"),
        *("Speicherreservierung", "RAM-Reservierung", "Reservierung", "Arbeitsspeicherreservierung"),
    ),
    "hot_add": ("CPU hot add", "cpu_hot_add", "CPU hot plug", "Hot add", "CPU-Hot-Add", "cpuHotAddEnabled"),
    "memory_hot_add": (
        *("Memory hot add", "memory_hot_add", "RAM hot add", "Memory hot plug", "RAM-Hot-Add"),
        "memoryHotAddEnabled",
    ),
    "cpu_limit": ("CPU limit", "CPU limit MHz", "cpu_limit", "CPU-Limit"),
    "cpu_reservation": ("CPU reservation", "CPU reservation MHz", "cpu_reservation", "CPU-Reservierung"),
    "memory_limit": ("Memory limit", "memory_limit", "RAM limit", "Speicherlimit", "RAM-Limit"),
    "latency": ("Latency sensitivity", "latency_sensitivity", "Latenzempfindlichkeit"),
    "affinity": ("CPU affinity", "Affinity", "sched.cpu.affinity", "Scheduling affinity", "CPU-Affinität"),
    "hardware": (
        *("Hardware version", "hardware_version", "HW version", "Virtual hardware", "VM version"),
        *("Compatibility", "VM compatibility", "Version", "Hardwareversion", "HW-Version", "Kompatibilität"),
    ),
    "host": (
        *("Host nodes", "host_nodes", "Host", "Host model", "Host type", "ESXi host", "Server model"),
        *("VMHost", "Hostmodell", "Hosttyp", "Servermodell", "NUMA-Knoten"),
    ),
    "cluster": ("Cluster", "Cluster name", "Clustername"),
    "esxi": ("ESXi", "ESXi release", "ESXi version", "vSphere", "vSphere version", "ESXi-Version"),
    "sql": (
        *("SQL edition", "sql_edition", "SQL Server edition", "SQL Server", "SQL", "Edition"),
        *("SQL-Edition", "SQL-Server-Edition"),
    ),
    "sql_version": (
        *("SQL version", "sql_version", "SQL Server version", "SQL release"),
        *("SQL-Version", "SQL-Server-Version"),
    ),
    "windows": (
        *("OS", "Operating system", "Guest OS", "Windows", "guest_os", "Guest", "Guest full name"),
        *("Betriebssystem", "Gastbetriebssystem"),
    ),
    "accepted": ("vnuma:ignore", "Accepted", "Waiver", "Akzeptiert", "Ausnahme"),
    **{key: (key,) for key in KEYS},
}
"""The columns, with their possible headers. Case, spaces and punctuation are ignored."""

# A header with one of these words is probably about what rules read.
_RELEVANT = re.compile(
    r"cpu|core|kern|socke|numa|\bram\b|memor|speicher|reserv|limit|affin|hot.?(?:add|plug)|latenc|esxi|sql",
    re.IGNORECASE,
)
_MOST_NAMED = 8

_NEEDED = (("name",), ("cpus", "topology", "sockets"))
_EXAMPLE = (
    "It needs a column for the name and one for vCPUs or topology: name;vCPU;memory GB;host;SQL edition"
)


def read_table(path: Path) -> Estate:
    """The VMs of a CSV file or a workbook. Raises InputError without VM columns."""
    is_text = path.suffix.lower() in {".csv", ".tsv"}
    if is_text:
        sheet, numbers = _csv(design_vm.decoded(design_vm.bounded_bytes(path, _MOST_BYTES, "a design table")))
    else:
        sheet, numbers = read_first_sheet(path, COLUMNS, _NEEDED, _TITLE_ROWS) or (Sheet("", {}), ())
    if has_rvtools_headers(" ".join(sheet.others)):
        raise InputError(
            f"{path} is an export of RVTools, not a design table.",
            fix=f"Check it with: vnuma check --rvtools {quote(str(path))}",
        )
    if not is_table(sheet):
        raise InputError(f"{path} has no columns that describe VMs.", fix=_EXAMPLE)
    return estate_of_table(path, sheet, numbers, has_lines=is_text)


_RVTOOLS = ("Powerstate", "Template", "VI SDK Server")


def has_rvtools_headers(headers: str) -> bool:
    """Whether these are RVTools' headers: its memory is in MiB, and its templates are no VMs."""
    return sum(name in headers for name in _RVTOOLS) > 1


def is_table(sheet: Sheet) -> bool:
    """Whether the headers are those of a design table."""
    return all(any(column in sheet.columns for column in group) for group in _NEEDED)


def sheet_of_mappings(rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """A sheet from YAML: each key of a mapping is a header."""
    headers = list(dict.fromkeys(str(key) for row in rows for key in row))
    cells = [[row.get(header) for header in headers] for row in rows]
    return Sheet.of("", [headers, *cells], COLUMNS)


def estate_of_table(path: Path, sheet: Sheet, numbers: Sequence[int], *, has_lines: bool) -> Estate:
    """The VMs of the rows; `numbers` are the rows' in the file, which are lines of a text file."""
    designs: list[design_vm.DesignedVm] = []
    unseen: list[Unseen] = []
    seen: dict[str, int] = {}
    file = design_vm.relative_to_here(path, path.parent)
    unknown = [name[:40] for name in sheet.others if _RELEVANT.search(name)]
    if unknown:
        unseen.append(Unseen("column", ", ".join(unknown[:_MOST_NAMED]), "no known header: not read"))
    for number, row in enumerate(islice(sheet, _MOST_VMS + 1), start=1):
        if number > _MOST_VMS:
            raise InputError(f"{path} has more than {_MOST_VMS:,} rows.", fix="Split it.")
        at = numbers[number - 1]
        place = Declared(file, at) if has_lines else None
        where = f"row {at}"
        name = row.text("name")
        if not name:
            if row.text("cpus") or row.text("topology"):  # anything else is a remark or a heading
                unseen.append(Unseen("vm", where, "it has no name: a total, or a VM that was not checked"))
            continue
        if name.strip(" :").lower() in _TOTALS:
            unseen.append(Unseen("vm", name, f"{where} is a total, not a VM: it was not checked"))
            continue
        first = seen.setdefault(name, number)
        address = name if first == number else f"{name} ({where})"
        if first != number:
            unseen.append(
                Unseen("vm", name, f"stands twice in the table, again in {where}: both are checked")
            )
        try:
            design = vm_of_row(row, address, place)
            designs.append(design)
            unseen += [Unseen("vm", name, f"{where}: {why}") for why in _unread(design)]
        except ContradictoryRow as wrong:
            unseen.append(Unseen("vm", name, f"{where}: {wrong}"))
    return design_vm.estate_of_designs(path, "table", "design table", designs, unseen)


def _unread(design: design_vm.DesignedVm) -> list[str]:
    """What is wrong with cells; not that they are empty, or name a host or system that is not known."""
    wrong = (why for part, why in design.absent.items() if part not in {"host", "guest"})
    return [why for why in dict.fromkeys(wrong) if why not in {NOT_SAID, NOT_SHOWN, HOST_DECIDES}]


def _csv(text: str) -> tuple[Sheet, tuple[int, ...]]:
    """The rows below the headers, by the separator that gives the most columns, and their lines."""
    best, lines = Sheet("", {}), tuple[int, ...]()
    for rows in csv_tables(text):
        for at, (_, header) in enumerate(rows[:_TITLE_ROWS]):
            sheet = Sheet.of("", [header, *[cells for _, cells in rows[at + 1 :]]], COLUMNS)
            if is_table(sheet) and len(sheet.columns) > len(best.columns):
                best, lines = sheet, tuple(line for line, _ in rows[at + 1 :])
    return best, lines


def csv_tables(text: str) -> Iterator[list[tuple[int, list[object]]]]:
    """The rows with their lines, as each separator that a spreadsheet writes splits them."""
    for separator in (";", ",", "\t", "|"):
        with suppress(csv.Error):
            yield list(_rows(text, separator))


def _rows(text: str, separator: str) -> Iterator[tuple[int, list[object]]]:
    """Non-empty rows, each with its first line."""
    reader, line = csv.reader(io.StringIO(text), delimiter=separator), 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield line, list(cells)
        line = reader.line_num + 1
