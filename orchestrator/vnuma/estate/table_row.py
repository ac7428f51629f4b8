"""One row of a design table as a VM: numbers with units, shapes, editions, hosts."""

from __future__ import annotations

import re
from collections.abc import Callable

from vnuma.checks.assumptions import DEFAULTS
from vnuma.checks.subject import EXTRA_CONFIG, HARDWARE
from vnuma.domain.topology.forecast import SQL_YEARS
from vnuma.domain.topology.licence import missing_edition
from vnuma.domain.topology.release import FOLLOW, MAX_PER_NODE, MINIMUM, PREFER_HT, hardware_version_of
from vnuma.domain.topology.vm_location import parse_host
from vnuma.domain.vm.estate import HOST_DECIDES, Declared, NotShown
from vnuma.domain.vm.facts import HostFacts
from vnuma.domain.vm.server import SqlEdition, WindowsFacts, windows_called
from vnuma.domain.vm.setting import Value
from vnuma.estate.design_vm import NEW_VM, DesignedVm, cpu_numbers
from vnuma.estate.workbook import NO, YES, Row, number, quantity, truth

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
