"""A design table: one planned VM per row, in CSV, a workbook or YAML.

Columns are found by their English or German headers and read with their units; docs/check.md lists them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from vnuma.checks.facts import DEFAULTS, EXTRA_CONFIG, HARDWARE
from vnuma.domain.topology.forecast import SQL_YEARS
from vnuma.domain.topology.licence import missing_edition
from vnuma.domain.topology.release import FOLLOW, MAX_PER_NODE, MINIMUM, PREFER_HT, hardware_version_of
from vnuma.domain.topology.vm_location import parse_host
from vnuma.domain.vm.estate import HOST_DECIDES, Declared, Estate, NotShown, Unread, Unseen
from vnuma.domain.vm.facts import HostFacts
from vnuma.domain.vm.server import SqlEdition, WindowsFacts, windows_called
from vnuma.domain.vm.setting import Value
from vnuma.errors import InputError
from vnuma.estate import design_vm
from vnuma.estate.design_vm import NEW_VM, DesignedVm, cpu_numbers
from vnuma.estate.workbook import NO, YES, Row, Sheet, number, quantity, read_first_sheet, truth

KEYS = (
    FOLLOW,
    MAX_PER_NODE,
    MINIMUM,
    PREFER_HT,
    "numa.nodeAffinity",
    "numa.autosize.once",
    "numa.consolidate",
)
"""Keys of extraConfig that a table may have a column for."""

_UNITS = {"mb": 1, "mib": 1, "m": 1, "gb": 1024, "gib": 1024, "g": 1024, "tb": 1 << 20, "tib": 1 << 20}
_MOST_PLAIN_GB = 2048
"""A number without a unit is GB up to here; above it, MB may be meant."""
_SHAPE = re.compile(r"(?<!\d)(\d{1,3}) ?[x*\u00d7] ?(\d{1,3})(?!\d)")
_YEAR = re.compile(r"\b20[0-9]{2}\b")
_EDITIONS = {
    "standard developer": "Standard Developer Edition",
    "enterprise": "Enterprise Edition: Core-based Licensing",
    **{
        word: f"{word.capitalize()} Edition"
        for word in ("developer", "evaluation", "standard", "web", "express")
    },
}
_ALL = {*YES, "all", "full", "max", "voll", "alles", "komplett", "locked"}
NOT_SAID = "the table does not give it"
"""The reason for a setting without a cell."""
NOT_SHOWN = NotShown("the table")
"""The same where its default may be assumed."""
_AUTOMATIC = {"auto", "automatic", "automatisch", "assigned at power on"}
"""vSphere chooses the cores per socket at power-on; "Assigned at power on" are its client's words."""
_NONE = {*NO, "none", "-", "keine", "ohne"}


class ContradictoryRow(ValueError):
    """A row that does not describe a VM; the message says why in a few words."""


def vm_of_row(row: Row, address: str, declared: Declared | None) -> DesignedVm:
    """The VM of a named row. Raises ContradictoryRow."""
    settings: dict[str, Value] = {key: row.text(key) for key in KEYS if row.text(key)}
    absent: dict[str, str] = dict.fromkeys((*NEW_VM, EXTRA_CONFIG), NOT_SHOWN)
    _read_shape(row, settings, absent)
    _read_memory(row, settings, absent)
    for name, column, read in (
        ("cpuHotAddEnabled", "hot_add", truth),
        ("memoryHotAddEnabled", "memory_hot_add", truth),
        ("cpuReservation", "cpu_reservation", number),
        ("cpuLimit", "cpu_limit", _limit),
        ("memoryLimit", "memory_limit", _limit),
        ("latencySensitivity", "latency", _level),
        ("cpuAffinity", "affinity", _affinity),
    ):
        _read(row, column, name, read, settings, absent)
    host = _host(row, absent)
    hardware = _hardware(row, absent)
    of_host = host is not None and absent.get(HARDWARE) == HOST_DECIDES
    if host and of_host:
        hardware = hardware_version_of(host.release.version)
        del absent[HARDWARE]
    return DesignedVm(
        address=address,
        name=row.text("name"),
        hardware=hardware,
        settings=settings,
        absent=absent,
        declared=declared,
        host=host,
        hardware_of_host=of_host,
        runs_on="" if host else row.text("host") or row.text("cluster"),
        windows=_windows(row, absent),
        sql=_sql(row, absent),
        accepted=tuple(filter(None, [row.text("accepted")])),
    )


def _read(
    row: Row,
    column: str,
    name: str,
    read: Callable[[object], Value],
    settings: dict[str, Value],
    absent: dict[str, str],
) -> None:
    """Read one cell as a setting, or store why it is not one."""
    if not row.text(column):
        absent[name] = NOT_SHOWN if name in DEFAULTS else NOT_SAID
        return
    absent.pop(name, None)
    value = read(row.cell(column))
    if value is None:
        absent[name] = f"{column} is {row.text(column)[:20]!r}, which cannot be read"
    else:
        settings[name] = value


def _read_shape(row: Row, settings: dict[str, Value], absent: dict[str, str]) -> None:
    """vCPUs, sockets, cores per socket: two of them give the third; contradictions are reported."""
    shape = _SHAPE.search(row.text("topology")) or _SHAPE.search(row.text("cpus"))
    automatic = row.text("per_socket").lower() in _AUTOMATIC
    sockets = _count(row, "sockets")
    per_socket = None if automatic else _count(row, "per_socket")
    cpus = None if _SHAPE.search(row.text("cpus")) else _count(row, "cpus")
    if shape:
        sockets, per_socket = int(shape[1]), int(shape[2])
    made = sockets * per_socket if sockets and per_socket else None
    if cpus and made and made != cpus:
        raise ContradictoryRow(
            f"{sockets} sockets of {per_socket} cores are {made} vCPUs, and the table says {cpus}"
        )
    cpus = cpus or made
    if not cpus:
        raise ContradictoryRow("it does not say how many vCPUs")
    settings["numCPUs"] = cpus
    if automatic and sockets:
        raise ContradictoryRow(f"cores per socket are automatic, and the table says {sockets} sockets")
    if sockets and not per_socket and cpus % sockets == 0:
        per_socket = cpus // sockets
    if automatic:
        settings |= {"numCoresPerSocket": 0, "autoCoresPerSocket": True}
    elif per_socket:
        settings |= {"numCoresPerSocket": per_socket, "autoCoresPerSocket": False}
    else:
        absent |= dict.fromkeys(("numCoresPerSocket", "autoCoresPerSocket"), NOT_SHOWN)


_COUNTS = {"per_socket": "cores per socket", "cpus": "vCPU"}
"""A column's name in messages, where it differs."""


def _count(row: Row, column: str) -> int | None:
    """A count, optionally followed by a word: `16 vCPU`. Raises ContradictoryRow for anything else."""
    text = row.text(column)
    if not text:
        return None
    found = quantity(text)
    if found is None or found[0] != int(found[0]) or found[0] < 1:
        raise ContradictoryRow(f"{_COUNTS.get(column, column)} is {text[:20]!r}, not a number of CPUs")
    return int(found[0])


def _read_memory(row: Row, settings: dict[str, Value], absent: dict[str, str]) -> None:
    text, plain = (row.text("memory"), 1024) if row.text("memory") else (row.text("memory_mb"), 1)
    if not text:
        absent["memoryMB"] = NOT_SAID
    else:
        memory = _megabytes(text, plain)
        if memory is None:
            absent["memoryMB"] = f"memory is {text[:20]!r}: write a number and GB or MB"
        else:
            settings["memoryMB"] = memory
    _read_reservation(row, settings, absent)


def _read_reservation(row: Row, settings: dict[str, Value], absent: dict[str, str]) -> None:
    """All memory, none, a share, or a size."""
    names, memory = ("memoryReservation", "memoryReservationLockedToMax"), settings.get("memoryMB")
    text = row.text("reservation").lower()
    found = quantity(text)
    if not text:
        absent |= dict.fromkeys(names, NOT_SAID)
    elif text in _NONE:
        settings |= dict(zip(names, (0, False), strict=True))
    elif isinstance(memory, int) and (text in _ALL or (found and found == (100, "%"))):
        settings |= dict(zip(names, (memory, True), strict=True))
    elif isinstance(memory, int) and found and found[1] == "%" and found[0] <= 100:
        settings |= dict(zip(names, (round(memory * found[0] / 100), False), strict=True))
    elif (size := _megabytes(text, 1024)) is None:
        absent |= dict.fromkeys(names, f"the reservation is {text[:20]!r}, which cannot be read")
    elif isinstance(memory, int) and size > memory:
        absent |= dict.fromkeys(names, f"the reservation is {text[:20]!r}, more than the VM's memory")
    else:
        settings |= dict(zip(names, (size, False), strict=True))


def _megabytes(text: str, plain: int) -> int | None:
    """A size with its unit, or the column's; without either, GB as far as MB cannot be meant."""
    found = quantity(text)
    if found is None or (found[1] and found[1] not in _UNITS):
        return None
    size, unit = found
    if not unit and plain == _UNITS["gb"] and size > _MOST_PLAIN_GB:
        return None
    return round(size * _UNITS.get(unit, plain))


def _limit(cell: object) -> Value:
    text = str(cell).strip().lower()
    if text in _NONE or text in {"unlimited", "unbegrenzt", "-1"}:
        return -1
    return number(cell)


def _affinity(cell: object) -> Value:
    text = str(cell).strip().lower()
    try:
        return () if text in _NONE - {"0"} else cpu_numbers(text)
    except ValueError:
        return None


def _level(cell: object) -> Value:
    text = str(cell).strip().lower()
    return {"hoch": "high", "mittel": "medium", "niedrig": "low"}.get(text, text) or None


def _hardware(row: Row, absent: dict[str, str]) -> int | None:
    """`19`, `vmx-19`, `v19`, the client's `ESXi 7.0 U2 and later (VM version 19)`; or the host's."""
    text = row.text("hardware").lower()
    found = re.fullmatch(r"(?:vmx-?|v)?([0-9]{1,2})(?:\.0)?", text, re.ASCII)
    found = found or re.search(r"\(vm version ([0-9]{1,2})\)", text, re.ASCII)
    if found:
        return int(found[1])
    text = row.text("hardware")
    absent[HARDWARE] = f"it is {text[:20]!r}, not a version such as 19" if text else HOST_DECIDES
    return None


def _host(row: Row, absent: dict[str, str]) -> HostFacts | None:
    """A host described by its nodes. For a mere name, the check needs more."""
    text = row.text("host")
    found = re.search(r"[1-9]\d{0,2}x\S+", text)
    if found:
        try:
            return parse_host(found[0].strip("(),;"), row.text("esxi") or "8.0")
        except ValueError as error:
            absent["host"] = str(error)
            return None
    named = text or row.text("cluster")
    if named:
        absent["host"] = (
            f"the design names {named[:40]} alone: give --snapshot FILE, where it is, or --host-nodes"
        )
    return None


def _windows(row: Row, absent: dict[str, str]) -> WindowsFacts | None:
    text = row.text("windows").removeprefix(f"{row.text('name')}:")  # PowerCLI's Guest begins with the VM
    called = windows_called(text)
    if text and not called:
        absent["guest"] = f"the operating system {text[:40]!r} is not known as a Windows"
    return called


def _sql(row: Row, absent: dict[str, str]) -> SqlEdition | None:
    """`Standard 2022` in one column, or edition and version in two."""
    said = f"{row.text('sql')} {row.text('sql_version')}".strip()
    text = re.sub(r"\bstd\b", "standard", said.lower())
    year = next((int(one) for one in _YEAR.findall(text) if int(one) in SQL_YEARS), None)
    edition = next((full for word, full in _EDITIONS.items() if word in text or word[:3] + "." in text), None)
    if edition and year and (missing := missing_edition(edition, SQL_YEARS[year])):
        absent["edition"] = f"the table's {said[:40]!r} does not exist: {missing}"
    elif edition and year:
        return SqlEdition(edition, SQL_YEARS[year])
    elif said:
        lacks = "release, such as 2022" if edition else "edition, such as Standard 2022"
        absent["edition"] = f"the table's {said[:40]!r} names no SQL Server {lacks}"
    return None


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
            f"{path} has RVTools' columns, but no sheet vInfo with its headers in row 1.",
            fix="Name the sheet so, or export all tabs to xlsx in RVTools.",
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
    for count, row in enumerate(islice(sheet, _MOST_VMS + 1), start=1):
        if count > _MOST_VMS:
            raise InputError(f"{path} has more than {_MOST_VMS:,} rows.", fix="Split it.")
        at = numbers[count - 1]
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
        first = seen.setdefault(name, count)
        address = name if first == count else f"{name} ({where})"
        if first != count:
            unseen.append(
                Unseen("vm", name, f"stands twice in the table, again in {where}: both are checked")
            )
        try:
            design = vm_of_row(row, address, place)
            designs.append(design)
            unseen += [Unseen("vm", name, f"{where}: {why}") for why in _unread(design)]
        except ContradictoryRow as wrong:
            unseen.append(Unread("vm", name, f"{where}: {wrong}"))
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
