"""What guest, Windows and SQL Server will see of a VM's shape, on one host or on several."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

from vnuma.domain.topology.licence import (
    SQL_2016,
    UNLIMITED,
    Usable,
    missing_edition,
    most_in_a_node,
    sql_limit,
    usable_by_sql,
    usable_by_windows,
    windows_sockets,
)
from vnuma.domain.topology.prediction import Confidence, PowerOn, Prediction, host_shape, predict
from vnuma.domain.topology.release import beyond_hardware
from vnuma.domain.topology.topology import Topology, unfit_node_size
from vnuma.domain.vm.facts import HostFacts
from vnuma.domain.vm.server import PROCESSOR_GROUP, WHOLE_NODES_BUILD, build_of, windows_called
from vnuma.domain.vm.setting import Settings
from vnuma.errors import UsageError
from vnuma.words.plain_text import gigabytes

# Major version by the year in SQL Server's product name.
SQL_YEARS = {2012: 11, 2014: 12, 2016: 13, 2017: 14, 2019: 15, 2022: 16, 2025: 17}

# Of a host node's 256 GB a VM of more got 226 GB: ESXi and other VMs need the rest (Denneman 2022-11-03).
MOST_SEEN_LOCAL = 226 / 256


_LEAST_IN_DOUBT = 0.5
"""A share of a node's estimated memory from which a smaller node than its estimate decides."""


@dataclass(frozen=True)
class PlannedGuest:
    """The software in the VM. `sql_major` is 13 for 2016, 16 for 2022; an empty `windows` is unknown."""

    sql_edition: str = "Developer"
    sql_major: int = 16
    windows: str = ""
    soft_numa: bool = True

    @property
    def many_groups_from(self) -> int:
        """The number of CPUs from which this Windows makes several processor groups, and splits nodes (W01);
        UNLIMITED: it does not split them, or is not known.
        """
        build = build_of(self.windows)
        return PROCESSOR_GROUP + 1 if build and build < WHOLE_NODES_BUILD else UNLIMITED

    @property
    def most_in_a_node(self) -> int:
        """Most vCPUs in a node that Windows does not split, and with which SQL Server starts."""
        return min(most_in_a_node(self.sql_major), self.many_groups_from - 1)


EDITIONS = ("developer", "evaluation", "enterprise", "standard", "web", "express")


def planned_guest(edition: str, year: int, windows: str, *, soft_numa: bool = True) -> PlannedGuest:
    """The software that somebody names. Raises UsageError for an unknown edition, year or Windows."""
    word = edition.strip().lower()
    if not word.startswith(EDITIONS):
        raise UsageError(
            f"'{edition}' is not an edition of SQL Server.", fix=f"Use one of {', '.join(EDITIONS)}."
        )
    if year not in SQL_YEARS:
        raise UsageError(
            f"SQL Server {year} does not exist.", fix=f"Use one of {', '.join(map(str, SQL_YEARS))}."
        )
    if missing := missing_edition(word, SQL_YEARS[year]):
        raise UsageError(f"{missing}.", fix="Use standard, or SQL Server 2022.")
    # Enterprise alone means the one licensed by core.
    full = "enterprise: core-based" if word == "enterprise" else word
    return PlannedGuest(full, SQL_YEARS[year], _windows(windows), soft_numa)


def _windows(name: str) -> str:
    """The full name of Windows, empty without one. Raises UsageError for a name that says nothing."""
    called = windows_called(name) or windows_called(f"Windows {name}")
    if not name.strip() or not called or not called.caption:
        return ""
    year = re.search(r"server\D*20\d\d\b(?! or later)", called.caption, re.IGNORECASE)
    if (year and called.build is None) or not windows_sockets(called.caption):
        raise UsageError(
            f"'{name}' is not a known Windows.", fix="For example: Server 2022, or Windows 11 Pro."
        )
    return called.caption


@dataclass(frozen=True)
class Forecast:
    """One shape on one host (or on several alike)."""

    topology: Topology
    hosts: tuple[str, ...]
    release: str
    prediction: Prediction
    sql_node_sizes: tuple[int, ...]
    """vCPUs of each SQLOS node, soft-NUMA included."""
    by_sql: Usable
    by_windows: Usable | None
    remote_mb: int | None
    """Memory beyond the nodes of its vCPUs, which is remote; None: unknown node sizes."""
    fullest: float
    """The largest share of a host node's memory that it takes; 0: unknown node sizes."""
    estimated: bool
    """Whether the memory of a host node is an estimate: the host's memory divided by its nodes."""
    not_started: str
    """Why this SQL Server does not start (S22); empty if it does."""
    split: str
    """Why Windows shows more nodes than ESXi (W01); empty if it does not, or is not known."""
    too_wide: bool
    """More vCPUs than the host has cores."""
    too_large: bool
    """More memory than the host holds."""
    stays_off: str
    """Why the VM does not power on with its manual node size (T13); empty if it does."""
    not_allowed: str
    """Why its hardware version does not allow this size (R08); empty if it does."""

    @property
    def sql_nodes_online(self) -> int:
        """SQLOS nodes with a CPU that the edition uses, which takes CPUs in the order of their numbers; the
        schedulers of the others are VISIBLE OFFLINE.
        """
        starts = accumulate(self.sql_node_sizes[:-1], initial=0)
        return sum(before < self.by_sql.cores for before in starts)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the layout is so, and what the software or the host leaves unused or refuses."""
        limits = [one for one in (self.by_sql, self.by_windows) if one and one.cores < self.topology.vcpus]
        found = (
            self.prediction.because,
            *(limit.because for limit in limits),
            *(self.memory_doubt, self.not_started, self.split, self.not_allowed, self.stays_off),
        )
        return tuple(filter(None, found))

    @property
    def impossible(self) -> bool:
        """More vCPUs than the host has cores, or a VM that cannot exist or does not power on."""
        return self.too_wide or bool(self.not_allowed or self.stays_off)

    @property
    def usable_cores(self) -> int:
        """vCPUs that both Windows and SQL Server use, by the stricter reading."""
        return self.limited_by.cores

    @property
    def limited_by(self) -> Usable:
        """The stricter of the two limits; SQL Server's if they are equal."""
        return min(filter(None, (self.by_sql, self.by_windows)), key=lambda limit: limit.cores)

    @property
    def memory_doubt(self) -> str:
        """Why memory that fits may be remote all the same; empty if nothing speaks for it."""
        if self.remote_mb or self.too_large:
            return ""
        if MOST_SEEN_LOCAL < self.fullest <= 1:
            needed = ", of which ESXi and other VMs need a part"
        elif self.estimated and _LEAST_IN_DOUBT < self.fullest <= 1:
            needed = ""
        else:
            return ""
        share = f"{self.fullest:.0%} of a host node's{self._estimate}"
        return f"its memory is {share}{needed}: some may be remote"

    @property
    def remote(self) -> str:
        """How much of its memory is remote; empty if none is, or it is not known."""
        return f"{gigabytes(self.remote_mb)}{self._estimate}" if self.remote_mb else ""

    @property
    def _estimate(self) -> str:
        return " (estimated)" if self.estimated else ""

    @property
    def hidden_nodes(self) -> int:
        """Host nodes that ESXi uses but the guest does not see; 0: the guest sees each."""
        clients = len(self.prediction.clients)
        return clients if clients > self.prediction.vnuma_nodes else 0

    @property
    def confidence(self) -> Confidence:
        """Low if the layout or an edition's limit is based on contradicting documents."""
        parts = ["low" if self.split else self.prediction.confidence, self.by_sql.confidence]
        if self.by_windows and self.by_windows.cores < self.topology.vcpus:
            parts.append(self.by_windows.confidence)
        return "low" if "low" in parts else "high"


def forecast(
    settings: Settings, hardware: int, host: HostFacts, guest: PlannedGuest, unseen: Collection[str] = ()
) -> Forecast:
    """What a power-on with these settings gives the guest. `unseen` names unknown settings."""
    vcpus = _number(settings, "numCPUs")
    seen = predict(host_shape(host), settings, hardware, unseen)
    power_on = PowerOn(host_shape(host), settings, hardware)
    per_socket = _cores_per_socket(power_on, seen)
    shape = Topology(max(1, vcpus // per_socket), per_socket)
    automatic = guest.soft_numa and guest.sql_major >= SQL_2016
    by_sql = usable_by_sql(sql_limit(guest.sql_edition, guest.sql_major), shape)
    memory_mb, node = _number(settings, "memoryMB"), host.node_memory_mb
    # ESXi spreads a VM's memory over its NUMA clients like its vCPUs.
    parts = [memory_mb * size // vcpus for size in seen.clients or seen.node_sizes]
    return Forecast(
        topology=shape,
        hosts=(host.name,),
        release=host.release.version,
        prediction=seen,
        sql_node_sizes=seen.cpu_node_sizes(soft_numa=automatic),
        by_sql=by_sql,
        by_windows=usable_by_windows(guest.windows, shape) if guest.windows else None,
        remote_mb=sum(max(0, part - host.local_memory_mb) for part in parts) if node and memory_mb else None,
        fullest=max(*parts, memory_mb / len(host.numa_nodes)) / node if node else 0,
        estimated=host.node_memory_estimated,
        not_started=_not_started(max(seen.node_sizes), guest.sql_major),
        split=_split(max(seen.node_sizes), guest),
        too_wide=vcpus > host.cores,
        too_large=memory_mb > host.largest_vm_mb > 0,
        stays_off=_stays_off(power_on),
        not_allowed=f"R08: {beyond}" if (beyond := beyond_hardware(vcpus, memory_mb, hardware)) else "",
    )


def forecast_on(
    settings: Settings,
    hardware: int,
    hosts: Iterable[HostFacts],
    guest: PlannedGuest,
    unseen: Collection[str] = (),
) -> list[Forecast]:
    """The same for every host; hosts with equal results are grouped, the first of them first."""
    found: dict[object, Forecast] = {}
    for host in hosts:
        one = forecast(settings, hardware, host, guest, unseen)
        key = one.release, one.prediction, one.remote_mb, one.memory_doubt, one.too_wide, one.too_large
        if known := found.get(key):
            one = replace(known, hosts=known.hosts + one.hosts, fullest=max(known.fullest, one.fullest))
        found[key] = one
    return list(found.values())


def _not_started(largest: int, sql_major: int) -> str:
    most = most_in_a_node(sql_major)
    if largest <= most:
        return ""
    return f"S22: nodes of {largest} vCPUs: SQL Server 2022 CU11 and later does not start above {most}"


def _stays_off(power_on: PowerOn) -> str:
    if not (power_on.node_size and power_on.virtual_numa):
        return ""
    per_socket = None if power_on.automatic_sockets else power_on.per_socket
    why = unfit_node_size(power_on.vcpus, per_socket, power_on.node_size)
    what = f"{power_on.node_size} cores per NUMA node {why}"
    return f"T13: {what}: the VM does not power on" if why else ""


def _split(largest: int, guest: PlannedGuest) -> str:
    if largest < guest.many_groups_from:
        return ""
    return (
        f"W01: {guest.windows} splits a node of {largest} vCPUs, because a processor group has at most "
        f"{PROCESSOR_GROUP}: the guest sees more nodes"
    )


def _cores_per_socket(power_on: PowerOn, seen: Prediction) -> int:
    """As stated; if automatic, a socket for each even node ("Let the hypervisor determine", Broadcom KB
    374613: 144 vCPUs are two sockets and two nodes).
    """
    if power_on.automatic_sockets and power_on.vcpus % seen.vnuma_nodes == 0:
        return power_on.vcpus // seen.vnuma_nodes
    return power_on.number("numCoresPerSocket") or 1


def _number(settings: Settings, name: str) -> int:
    value = settings.get(name)
    return value if isinstance(value, int) else 0


@dataclass(frozen=True)
class Span:
    """A range of VM sizes (vCPUs) with the same number of vNUMA nodes."""

    nodes: str
    """That number, with alternatives if any; `-` if no host node fits these sizes."""
    memory: str
    confidence: str
    vcpus: tuple[int, ...]
    even: tuple[int, ...]
    """The sizes with equal nodes."""

    @property
    def fits(self) -> bool:
        """Whether the host has that many cores."""
        return self.nodes != "-"


def spans_by_hosts(rows: Sequence[Forecast]) -> dict[tuple[str, ...], tuple[Span, ...]]:
    """The ranges of each host, ascending; hosts with the same ranges share an entry."""
    found: dict[tuple[Span, ...], list[str]] = {}
    for host in dict.fromkeys(name for row in rows for name in row.hosts):
        found.setdefault(tuple(_spans(row for row in rows if host in row.hosts)), []).append(host)
    return {tuple(hosts): spans for spans, hosts in found.items()}


def even_everywhere(found: Iterable[Sequence[Span]]) -> tuple[int, ...]:
    """Sizes that are even on every host, ascending: VMs of such sizes can move to any of them."""
    even = [{size for span in spans for size in span.even if span.fits} for spans in found]
    return tuple(sorted(set.intersection(*even))) if even else ()


def is_even(row: Forecast) -> bool:
    """Whether all vNUMA nodes have the same number of vCPUs, and the size is possible there."""
    return not row.impossible and _even(row.prediction)


def memory_words(row: Forecast) -> str:
    """The placement of this size's memory, in a few words."""
    if row.too_large or row.impossible:
        return "does not fit"
    if row.remote_mb is None:
        return "not known"
    if row.remote_mb:
        return "partly remote"
    return f"on {row.hidden_nodes} host nodes, unseen" if row.hidden_nodes else "local"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers in short form: `4-16`, `18-32 by 2`, `33, 36`, `4-14, 16-30 by 2, 36`; or empty."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and (len(runs[-1]) == 1 or number - runs[-1][-1] == runs[-1][1] - runs[-1][0]):
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(_run(run) for run in runs)


def _run(run: Sequence[int]) -> str:
    step = run[1] - run[0] if len(run) > 1 else 0
    if step != 1 and len(run) < 3:
        return ", ".join(map(str, run))
    return f"{run[0]}-{run[-1]}" + (f" by {step}" if step > 1 else "")


def _spans(rows: Iterable[Forecast]) -> Iterator[Span]:
    for nodes, span in groupby(rows, _nodes):
        sizes = list(span)
        even = [row for row in sizes if _even(row.prediction)]
        yield Span(
            nodes=nodes,
            memory=_common(sizes, even, memory_words),
            confidence=_common(sizes, even, lambda row: row.prediction.confidence),
            vcpus=_vcpus(sizes),
            even=_vcpus(even),
        )


def _nodes(row: Forecast) -> str:
    """What the sizes of a range have in common; sizes that fit no host node form one range."""
    if row.impossible:
        return "-"
    others = "".join(f", else {count}" for count in row.prediction.alternatives)
    return f"{row.prediction.vnuma_nodes}{others}"


def _common(sizes: Sequence[Forecast], even: Sequence[Forecast], words: Callable[[Forecast], str]) -> str:
    """What all sizes share, or all even ones, or each distinct text."""
    every = list(dict.fromkeys(map(words, sizes)))
    if len(every) == 1:
        return every[0]
    best = list(dict.fromkeys(map(words, even)))
    return f"{best[0]} if even" if len(best) == 1 else " or ".join(every)


def _even(size: Prediction) -> bool:
    return len(set(size.node_sizes)) == 1


def _vcpus(rows: Iterable[Forecast]) -> tuple[int, ...]:
    return tuple(sum(row.prediction.node_sizes) for row in rows)
