"""Tools inside the guest that show its topology: Coreinfo on Windows; lscpu, numactl and lstopo on Linux.

Also /sys/devices/system/node and `dd`'s own times, whose parsers raise ValueError for any other text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from vnuma.logs.pasted import sources

_KIND = r"(Socket|NUMA Node|Group|Physical Processor)\s+(\d{1,4})"
_DASHES = "\u2013\u2014"  # en and em dash
_CPUS = rf"[*\-{_DASHES}]+"
_MAP = re.compile(rf"^\s*({_CPUS})\s*{_KIND}\b", re.ASCII)
_HEADING = re.compile(rf"^\s*{_KIND}(?: \([^)]{{1,40}}\))?:\s*$", re.ASCII)
_TITLE = re.compile(r"^\s*(Logical [\w ]{1,40} Map):\s*$", re.ASCII)
_MASK = re.compile(rf"^\s*({_CPUS})\s*$", re.ASCII)
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_PACKAGE = re.compile(r"\bPackage\s+L#\d", re.ASCII)
_LSTOPO_NODE = re.compile(r"\bNUMANode\s+L#\d", re.ASCII)
_EACH = re.compile(r"\b(\d{1,4})x total", re.ASCII)
_CORE = re.compile(r"\bCore\s+L#\d", re.ASCII)
_AVAILABLE = re.compile(r"^\s*available:\s*(\d{1,4}) nodes?\b", re.ASCII)
_NUMACTL = re.compile(r"^\s*node (\d{1,4}) (cpus|size):\s*([\d ,-]{0,20000})", re.ASCII)

_MOST_CPUS = 4096


@dataclass(frozen=True)
class GuestView:
    """A tool's view of the guest; None where missing. Sizes are logical CPUs by node, memory in MB."""

    cpus: int | None = None
    sockets: int | None = None
    cores_per_socket: int | None = None
    numa_nodes: int | None = None
    node_sizes: tuple[int, ...] = ()
    node_memory_mb: tuple[int, ...] = ()
    doubts: tuple[str, ...] = ()


def coreinfo(text: str) -> Iterator[GuestView]:
    """Coreinfo's maps, in which `*` marks a logical CPU. A uniform guest shows one node.

    With several processor groups (more than 64 CPUs) a heading such as `NUMA Node 0:` stands above a line for
    each group.
    """
    for part in sources(text.splitlines(), _coreinfo_key):
        maps, width = _maps(part)
        if maps:
            yield _of_maps(maps, width)


def _coreinfo_key(line: str) -> Hashable:
    title, row = _TITLE.match(line), _HEADING.match(line) or _MAP.match(line)
    return title[1] if title else row.groups()[-2:] if row else None


def _maps(lines: list[str]) -> tuple[dict[str, Counter[int]], int | None]:
    """Marked CPUs by kind and number, and the width of the maps; None if dashes have replaced hyphens."""
    maps: dict[str, Counter[int]] = {}
    width: int | None = 0
    heading: tuple[str, int] | None = None
    for line in lines:
        above, found = _HEADING.match(line), _MAP.match(line)
        mask = _MASK.match(line) if heading else None
        heading = (above[1], int(above[2])) if above else heading if mask else None
        row = (found[2], int(found[3])) if found else heading if mask else None
        if row:
            cpus = (found or mask or line)[1]
            maps.setdefault(row[0], Counter())[row[1]] += cpus.count("*")
            changed = width is None or any(dash in cpus for dash in _DASHES)
            width = None if changed else max(width or 0, len(cpus))
    return maps, width


def _of_maps(maps: Mapping[str, Counter[int]], width: int | None) -> GuestView:
    """The view of whole maps; a map that places fewer CPUs than there are is cut."""
    placed = {kind: sum(numbers.values()) for kind, numbers in maps.items()}
    cpus = placed.get("Group") or max(placed.values())
    if width is not None and len(maps.get("Group", ())) < 2 and placed.get("NUMA Node", 0) <= width:
        cpus = max(cpus, width)
    cut = [kind for kind in ("Socket", "NUMA Node") if placed.get(kind, cpus) < cpus]
    doubts = [f"the map of {kind}s is cut: it places {placed[kind]} of {cpus} CPUs" for kind in cut]
    if width is None:
        doubts.append("a page has changed its hyphens into dashes, so the width of its maps is lost")
    nodes = maps["NUMA Node"] if "NUMA Node" in maps and "NUMA Node" not in cut else Counter[int]()
    return GuestView(
        cpus=cpus,
        sockets=len(maps["Socket"]) if "Socket" in maps and "Socket" not in cut else None,
        numa_nodes=len(nodes) or None,
        node_sizes=tuple(size for _, size in sorted(nodes.items())),
        doubts=tuple(doubts),
    )


def numactl(text: str) -> Iterator[GuestView]:
    """`numactl -H`: the nodes with their CPUs and memory."""
    for part in sources(text.splitlines(), _numactl_key):
        available = next((int(found[1]) for line in part if (found := _AVAILABLE.match(line))), None)
        rows = sorted((int(found[1]), found[2], found[3]) for line in part if (found := _NUMACTL.match(line)))
        sizes = [_cpus(numbers) for _, what, numbers in rows if what == "cpus"]
        found_mb = [_RANGE.match(numbers) for _, what, numbers in rows if what == "size"]
        memory = [int(size[1]) for size in found_mb if size]
        if sizes:
            view = GuestView(sum(sizes), None, None, available or len(sizes), tuple(sizes), tuple(memory))
            yield _agreeing(view, total=None)


def _numactl_key(line: str) -> Hashable:
    found = _NUMACTL.match(line)
    return (found[1], found[2]) if found else "available" if _AVAILABLE.match(line) else None


def lstopo(text: str) -> Iterator[GuestView]:
    """lstopo's text form: packages and NUMA nodes, with their cores if counted or listed."""
    for lines in sources(text.splitlines(), lambda line: line.lstrip().startswith("Machine (") or None):
        packages = sum(len(_PACKAGE.findall(line)) for line in lines)
        nodes = sum(len(_LSTOPO_NODE.findall(line)) for line in lines)
        sizes: list[int] = []
        for line in lines:
            if _LSTOPO_NODE.search(line):
                counted = _EACH.search(line)
                sizes.append(int(counted[1]) if counted else 0)
            if _CORE.search(line) and sizes and not _EACH.search(line):
                sizes[-1] += 1
        known = tuple(sizes) if sizes and all(sizes) else ()
        if packages or nodes:
            yield GuestView(sum(known) or None, packages or None, None, nodes or None, known)


def _agreeing(view: GuestView, total: int | None) -> GuestView:
    """The view, without sizes that contradict its own totals: the text is cut, or changed."""
    doubts = []
    if view.node_sizes and view.numa_nodes not in (None, len(view.node_sizes)):
        doubts.append(f"it has {view.numa_nodes} NUMA nodes, and shows the CPUs of {len(view.node_sizes)}")
    if view.node_sizes and total not in (None, sum(view.node_sizes)):
        doubts.append(f"it has {total} CPUs, and its nodes have {sum(view.node_sizes)}")
    return replace(view, node_sizes=() if doubts else view.node_sizes, doubts=tuple(doubts))


_AFTER_LABEL = re.compile("[:\uff1a]|(?<=»)[ \t]")
"""A colon, also one as wide as a Chinese character; one Spanish label has none."""

_LONGEST_LABEL = 100
_NODE = re.compile(r"NUMA\D{0,12}(\d{1,4})|(\d{1,4}) NUMA")
_LISTED = re.compile(r"\d[\d,-]{0,3999}", re.ASCII)
_WHOLE = re.compile(r"\d{1,6}", re.ASCII)
_NODES = re.compile(r".{0,12}NUMA(?: node\(s\)|-Knoten| 节点| ?ノード数?)?", re.I)
_SOCKETS = re.compile(r"«?(?:Socket\(s\)|Sockel|Soquete\(s\)|座|ソケット数?)»?", re.I)
_SOCKET_WORD = re.compile(r"socket|sockel|soquete|座|ソケット", re.I)
_CORE_WORD = re.compile(r"\bcore|\bkern|\bc(?:œ|oe)ur|\bn[úu]cleo|核|コア", re.I)
_ALL = re.compile(r"CPU(?:\(s\)|s)?|Processeur\(s\)|CPU 数", re.I)
_OFFLINE = re.compile(r"(?:Off-line|Offline) CPU\(s\) list", re.I)


def lscpu(text: str) -> Iterator[GuestView]:
    """lscpu's summary, in any of the languages into which util-linux is translated.

    The translations mix languages line by line; every one keeps the word NUMA and the order of the lines.
    """
    for part in sources(text.splitlines(), _lscpu_key):
        said = list(filter(None, map(_lscpu_field, part)))
        fields, times = dict(said), Counter(key for key, _ in said)
        sizes = tuple(fields[node] for node in sorted(key for key in fields if isinstance(key, int)))
        if not sizes and not {"CPU(s)", "nodes", "sockets", "cores"} & fields.keys():
            continue
        offline = any(_OFFLINE.match(line.strip()) for line in part)
        cpus = fields.get("CPU(s)", fields.get("cpus"))
        # A machine with processors of several models has these lines for each model.
        sockets, cores = (fields.get(key) if times[key] == 1 else None for key in ("sockets", "cores"))
        view = GuestView(cpus, sockets, cores, fields.get("nodes"), sizes)
        yield _agreeing(view, total=None if offline else cpus)


def _lscpu_key(line: str) -> Hashable:
    """What a machine's summary has once."""
    found = _lscpu_field(line)
    return found[0] if found and found[0] not in ("sockets", "cores") else None


def _lscpu_field(line: str) -> tuple[Hashable, int] | None:
    """What a line of lscpu says: of a node by its number the size, of all else the figure."""
    end = _AFTER_LABEL.search(line[:_LONGEST_LABEL])
    if end is None:
        return None
    label, value = line[: end.start()].strip(), line[end.end() :].strip()
    node = _NODE.search(label)
    if node and (_LISTED.fullmatch(value) or (not value and "CPU" in label)):  # a node of memory has none
        return int(node[1] or node[2]), _cpus(value)
    if not _WHOLE.fullmatch(value):
        return None
    return (name, int(value)) if (name := _lscpu_name(label)) else None


def _lscpu_name(label: str) -> str | None:
    """Which figure a label names. `CPU(s)` is lscpu's own; other names of it also stand elsewhere."""
    if _SOCKETS.fullmatch(label):
        return "sockets"
    if _NODES.fullmatch(label):
        return "nodes"
    if _ALL.fullmatch(label):
        return "CPU(s)" if label.lower() == "cpu(s)" else "cpus"
    of_a_form = "(" in label or not label.isascii()  # CoresPerSocket is PowerCLI's
    return "cores" if of_a_form and _SOCKET_WORD.search(label) and _CORE_WORD.search(label) else None


def _cpus(ranges: str) -> int:
    """The number of CPUs in a list such as `0-7,16-23`."""
    total = 0
    for first, last in _RANGE.findall(ranges):
        total += max(0, int(last or first) - int(first) + 1)
    return min(total, _MOST_CPUS)


_SECTION = re.compile(r"^@@ ([\w./-]{1,80})$", re.ASCII)
_MEMINFO = re.compile(r"^Node (\d{1,4}) (\w+(?:\(\w+\))?):\s+(\d{1,15}) kB\s*$", re.ASCII | re.M)
_KERNEL_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
_DD = re.compile(
    r"^(\d{1,18}) bytes (?:\([^)]{1,60}\) )?copied, "
    r"(\d{1,12}(?:\.\d{1,12})?(?:e[+-]?\d{1,3})?) s(?:econds)?\b",
    re.ASCII | re.M,
)

MOST_CPUS = 65536


@dataclass(frozen=True)
class Copied:
    """`dd`'s final line: bytes, and seconds by its own clock."""

    bytes: int
    seconds: float


def sections(text: str) -> dict[str, str]:
    """A script's output split at its lines `@@ NAME`, without the part before the first."""
    found: dict[str, list[str]] = {}
    name = None
    for line in text.splitlines():
        mark = _SECTION.match(line)
        if mark:
            name = mark[1]
            found[name] = []
        elif name is not None:
            found[name].append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def meminfo(text: str) -> dict[int, dict[str, int]]:
    """Kilobytes by node and name, from one or several files /sys/devices/system/node/node*/meminfo.

    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-devices-node
    """
    found: dict[int, dict[str, int]] = {}
    for node, name, kilobytes in _MEMINFO.findall(text):
        found.setdefault(int(node), {})[name] = int(kilobytes)
    if not found:
        raise ValueError("no line of a node's meminfo was found")
    return found


def number_list(text: str) -> tuple[int, ...]:
    """A kernel list of numbers, `0-3,8`, as cpulist and online print it; empty for a node without CPUs."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        found = _KERNEL_RANGE.fullmatch(part.strip())
        if not found:
            raise ValueError(f"not a list of numbers: {text.strip()[:60]!r}")
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < MOST_CPUS:
            raise ValueError(f"no range: {part!r}")
        numbers += range(first, last + 1)
    return tuple(numbers)


def copied(text: str) -> tuple[Copied, ...]:
    """The final line of every `dd` in a text: old and new GNU coreutils, and busybox."""
    found = tuple(Copied(int(size), float(seconds)) for size, seconds in _DD.findall(text))
    if any(one.seconds <= 0 for one in found):
        raise ValueError("dd reports an elapsed time of zero")
    return found


_IDLE = (3, 4)
"""Positions of idle and iowait in the line `cpu` of /proc/stat (proc(5))."""


@dataclass(frozen=True)
class MachineTime:
    """Time of all CPUs of a Linux machine since its start, in ticks."""

    all: int
    idle: int


def machine_time(stat: str | None) -> MachineTime | None:
    """The machine's CPU time so far, from the line `cpu` of its /proc/stat; None without one."""
    if stat is None:
        return None
    ticks = [int(part) for part in stat.split()[1:9]]
    return MachineTime(sum(ticks), sum(ticks[place] for place in _IDLE))


def machine_busy(before: MachineTime | None, after: MachineTime | None) -> float | None:
    """The share of all CPUs that were busy in between, 0 to 1; None if unknown."""
    if before is None or after is None or after.all <= before.all:
        return None
    return 1 - (after.idle - before.idle) / (after.all - before.all)
