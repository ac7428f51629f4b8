"""A designed VM as facts: what all sources of designs share, and what none of them knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vnuma.domain.vm.estate import Before, Declared, Estate, EstateVm, SourceKind, Unread, Unseen
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, VmFacts
from vnuma.domain.vm.server import SqlEdition, WindowsFacts, windows_of_guest_id
from vnuma.domain.vm.setting import Power, Settings, Value, ValueKind
from vnuma.errors import InputError, reading
from vnuma.logs.pasted import utf16_text
from vnuma.words import bounded_json

NEW_VM: Settings = {
    **dict.fromkeys(("cpuAffinity", "memoryAffinity"), ()),
    **{"coresPerNumaNode": 0, "autoCoresPerNumaNode": True, "exposeVnumaOnCpuHotadd": False},
}
"""vSphere's defaults for what a source cannot set, or does not. Certain only for a new VM without
a template.
"""

ACCEPTED_KEY = "vnuma.ignore"
"""The extraConfig key with accepted findings, for sources without comments."""

NO_HOST = "the design names no host (--host-nodes, --cluster)"


def cpu_numbers(text: str) -> tuple[int, ...]:
    """Logical CPUs or nodes: `all`, or numbers and ranges. Raises ValueError for anything else."""
    if text.strip().lower() in {"", "all"}:
        return ()
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        ends = int(first), int(last or first)
        if not 0 <= ends[0] <= ends[1] < 4096:
            raise ValueError(text)
        found.update(range(ends[0], ends[1] + 1))
    return tuple(sorted(found))


SIZE = frozenset({"numCPUs", "numCoresPerSocket", "memoryMB"})
"""A VM's size: if one of these is given but is not a number, the VM is not read."""


@dataclass(frozen=True)
class DesignedVm:
    """One VM of a design. `hardware` is None, with a reason in `absent`, where the design leaves it open."""

    address: str
    """Identifies it in the design."""
    name: str
    hardware: int | None
    settings: Mapping[str, Value]
    absent: Mapping[str, str] = field(default_factory=dict)
    guest_id: str = ""
    declared: Declared | None = None
    host: HostFacts | None = None
    """The host that the design describes; None without one."""
    runs_on: str = ""
    """The name, model or cluster of its host in the design."""
    windows: WindowsFacts | None = None
    sql: SqlEdition | None = None
    accepted: tuple[str, ...] = ()
    offered: tuple[int, ...] = ()
    """Hardware versions of which the host will choose one; `hardware` is the highest."""
    hardware_of_host: bool = False
    """Whether `hardware` comes from `host`, since the design gives no version itself."""
    before: Before | None = None

    def facts(self, source: str) -> EstateVm:
        """Facts for the rules: powered off, and on no host."""
        facts = VmFacts(
            moid=self.address,
            name=self.name,
            path=self.address,
            vcenter_uuid=source,
            instance_uuid=self.address,
            hardware_version=self.hardware or 0,
            guest_id=self.guest_id,
            guest_full_name="",
            power=Power.OFF,
            host_moid=self.host.moid if self.host else "",
            host_name=self.host.name if self.host else self.runs_on,
            tools_running=False,
            change_version="",
            settings=dict(self.settings),
        )
        no_host = {} if self.host else {"host": NO_HOST}
        return EstateVm(
            facts,
            {**no_host, **self.absent},
            guest=self.windows or windows_of_guest_id(self.guest_id),
            declared=self.declared,
            sql=self.sql,
            accepted=self.accepted,
            hardware_of_host=self.hardware_of_host,
            offered=self.offered,
            before=self.before,
        )


def estate_of_designs(
    path: Path,
    kind: SourceKind,
    product: str,
    designed: Sequence[DesignedVm | Unseen],
    unseen: Iterable[Unseen] = (),
) -> Estate:
    """The VMs of one file; one that no machine can be is named instead of checked."""
    vms, hosts = [], dict[str, HostFacts]()
    left = [*unseen, *(one for one in designed if isinstance(one, Unseen))]
    for one in designed:
        if isinstance(one, Unseen):
            continue
        vm = one.facts(f"{kind}:{path.name}")
        why = next(implausible_vm(vm.facts), "")
        if why:
            left.append(Unread("vm", one.address, why))
        else:
            vms.append(vm)
            hosts |= {one.host.moid: one.host} if one.host else {}
    return Estate(
        source=path.name,
        kind=kind,
        read_at=datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        product=product,
        version="",
        vms=tuple(vms),
        clusters=tuple(ClusterFacts(host.moid, host.name, None, (host,)) for host in hosts.values()),
        unseen=tuple(left),
    )


def json_in(path: Path, most: int) -> Any:
    """A JSON document of at most that size. Raises InputError for no file, ValueError for another content."""
    with reading(path), path.open("rb") as file:
        return bounded_json.read_json(file.read(most + 1), most_bytes=most)


def bounded_bytes(path: Path, most: int, what: str) -> bytes:
    """A file's content. Raises InputError for an unreadable or too large one."""
    with reading(path), path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(
            f"{path} is larger than {most // 1_000_000} MB: it is not {what}.", fix="Name another file."
        )
    return data


def decoded(data: bytes) -> str:
    """Text from any editor or spreadsheet: Unicode, else Windows' Latin letters."""
    if (text := utf16_text(data)) is not None:
        return text
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def declared_at_start(path: Path) -> Declared:
    """The place of a VM that a file describes alone."""
    return Declared(relative_to_here(path, path.parent), 1)


def relative_to_here(file: Path, folder: Path) -> str:
    """A file's path from the working directory, as annotations of a repository need it; else from
    `folder`.
    """
    here = Path.cwd()
    base = here if file.resolve().is_relative_to(here) else folder.resolve()
    return file.resolve().relative_to(base).as_posix()


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a list of a document."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


MARK = "vnuma:ignore"
TYPES: Mapping[ValueKind, type] = {ValueKind.NUMBER: int, ValueKind.SWITCH: bool, ValueKind.WORD: str}
"""The type of a JSON value of each kind that is one value."""

_COMMENTS = ("#", "//", "/*", "*")


def accepted_in(lines: Sequence[str], first: int, last: int) -> tuple[str, ...]:
    """The marks in these lines, counted from 1, and in the comments just above them."""
    above = first
    while above > 1 and _is_comment(lines[above - 2]):
        above -= 1
    return tuple(line[line.index(MARK) :].strip() for line in lines[above - 1 : last] if MARK in line)


def block_end(lines: Sequence[str], following: int) -> int:
    """The last line of a block before the line `following` (0: the file's end). Comments just above that line
    belong to it.
    """
    last = following - 1 if following else len(lines)
    while last > 0 and following and _is_comment(lines[last - 1]):
        last -= 1
    return last


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(_COMMENTS)


MOST_CPUS = 4096
"""Four times the CPUs of the largest host or VM."""
MOST_MB = 10**9
"""A petabyte."""

_MOST = {
    "numCPUs": MOST_CPUS,
    "memoryMB": MOST_MB,
    "numCoresPerSocket": MOST_CPUS,
    "coresPerNumaNode": MOST_CPUS,
}
_LEAST = {"numCPUs": 1, "memoryMB": 1}
_RELEASE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,9})*", re.ASCII)


def implausible(estate: Estate) -> Iterator[str]:
    """Impossible values, each in a few words."""
    for vm in estate.vms:
        yield from implausible_vm(vm.facts)
    for host in estate.hosts.values():
        yield from _of_host(host)


def implausible_vm(vm: VmFacts) -> Iterator[str]:
    """A VM's impossible values, each in a few words."""
    for name, most in _MOST.items():
        value = vm.settings.get(name)
        least = _LEAST.get(name, 0)
        if name in vm.settings and not (value is None and not least) and not _is_count(value, least, most):
            yield f"{name} of VM {vm.name} is {str(value)[:20]!r}, not a number from {least} to {most:,}"
    for name in ("cpuAffinity", "memoryAffinity"):
        value = vm.settings.get(name)
        if isinstance(value, tuple) and not all(_is_count(one, 0, MOST_CPUS) for one in value):
            yield f"{name} of VM {vm.name} names a CPU or node that no host can have"


def _of_host(host: HostFacts) -> Iterator[str]:
    for name in ("packages", "cores", "threads"):
        if not _is_count(getattr(host, name), 1, MOST_CPUS):
            yield f"{name} of host {host.name} is {getattr(host, name)}, not a number from 1 to {MOST_CPUS:,}"
    if not _RELEASE.fullmatch(host.release.version):
        yield f"the release of host {host.name} is {host.release.version[:20]!r}, not a version such as 8.0.3"
    if not host.numa_nodes:
        yield f"host {host.name} has no NUMA node"
    for node in host.numa_nodes:
        cpus_exist = len(node.cpus) >= host.threads_per_core if host.cores > 0 else False
        if not cpus_exist or not all(_is_count(cpu, 0, MOST_CPUS) for cpu in node.cpus):
            yield f"NUMA node {node.id} of host {host.name} has no CPUs, or one that no host can have"


def _is_count(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
