"""Facts of a SQL Server and its Windows: plain values, units in the names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from vnuma.domain.vm.facts import GuestTopology


@dataclass(frozen=True)
class Permissions:
    """This login's permissions on the server; None if the version lacks one."""

    view_server_state: bool
    view_server_performance_state: bool | None
    create_any_database: bool
    sysadmin: bool

    @property
    def reads_state(self) -> bool:
        """Whether the dynamic management views can be read."""
        return self.view_server_state or bool(self.view_server_performance_state)


@dataclass(frozen=True)
class ServerFacts:
    """A running SQL Server. None: not in this version, or not visible to this login.

    Memory is in kilobytes or megabytes as named; `max_dop` and similar are values in use.
    """

    version: str
    version_text: str
    product_level: str | None
    update_level: str | None
    edition: str
    engine_edition: int
    collation: str
    xtp_supported: bool
    hadr_enabled: bool
    clustered: bool
    cpu_count: int
    scheduler_count: int
    max_workers: int
    physical_memory_kb: int
    committed_kb: int
    committed_target_kb: int
    uptime_s: float
    start_time: str
    """By the guest's clock and in its time zone."""
    affinity: str | None
    virtual_machine: str | None
    numa_node_count: int | None
    """As in sys.dm_os_sys_info, which includes soft-NUMA nodes."""
    soft_numa: str | None
    memory_model: str | None
    max_dop: int | None
    cost_threshold: int | None
    max_server_memory_mb: int | None
    min_server_memory_mb: int | None
    lightweight_pooling: bool | None
    trace_flags: tuple[int, ...] | None
    permissions: Permissions
    other_sessions: int
    foreign_committed_kb: Mapping[int, int]
    """A node's memory on other nodes, by memory node."""

    @cached_property
    def major(self) -> int:
        """Major version: 13 is 2016, 14 2017, 15 2019, 16 2022, 17 2025; 0 if the text has no number."""
        head = self.version.partition(".")[0]
        return int(head) if head.isdecimal() and len(head) <= 9 else 0


@dataclass(frozen=True)
class SqlEdition:
    """Edition and version of a SQL Server, running or planned.

    `major` is 16 for 2022; an empty `version` means planned: any update of that release.
    """

    edition: str
    major: int
    version: str = ""


@dataclass(frozen=True)
class XtpDatabase:
    """A database with memory-optimised tables, and its resource pool (None: none)."""

    name: str
    pool: str | None
    min_memory_percent: int | None = None
    max_memory_percent: int | None = None


@dataclass(frozen=True)
class SqlFacts:
    """A SQL Server for the design rules: its facts, its topology, and what only rules need.

    None: not read, or not in this version.
    """

    server: ServerFacts
    topology: GuestTopology
    licensed_cpus: int | None = None
    """From the error log: "using N logical processors based on SQL Server licensing"."""
    xtp_databases: tuple[XtpDatabase, ...] | None = None
    tcp_ports: str | None = None
    """The TCP port setting, including node masks: `1433,50001[0x1]`."""
    connection_nodes: tuple[int, ...] | None = None
    """NUMA nodes of this login's connections, one entry per connection."""
    processor_groups: int | None = None
    """Windows processor groups of SQL Server's nodes."""
    dop_feedback: bool | None = None
    """Whether DOP feedback may change degrees of parallelism (2022 and later)."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Why a query for one of these failed, by the field's name."""

    @cached_property
    def edition(self) -> SqlEdition:
        """The running edition."""
        return SqlEdition(self.server.edition, self.server.major, self.server.version)


@dataclass(frozen=True)
class WindowsFacts:
    """Windows as shown by Tools or SQL Server. None: not read."""

    build: int | None = None
    """Such as 17763 (2019), 20348 (2022), 26100 (2025)."""
    caption: str | None = None
    """Such as Microsoft Windows Server 2022 Standard."""


_BUILDS = {
    **{"2008": 6003, "2008 r2": 7601, "2012": 9200, "2012 r2": 9600},
    **{"2016": 14393, "2019": 17763, "2022": 20348, "2025": 26100},
}
"""The last build of each Windows Server (https://learn.microsoft.com/windows-server/get-started)."""
_SERVER = re.compile(r"\b(20[0-9]{2}(?: r2)?)\b(?! or later)")

PROCESSOR_GROUP = 64
"""Most CPUs in a processor group."""
WHOLE_NODES_BUILD = 20348
"""From Windows Server 2022 on a NUMA node may be in several groups; before, Windows splits it ("NUMA
support", and remarks on KeQueryNodeActiveAffinity2, learn.microsoft.com).
"""


def build_of(caption: str) -> int | None:
    """The build of a Windows Server, by its name; None for another system, or a name that several have."""
    found = _SERVER.search(caption.lower()) if "server" in caption.lower() else None
    return _BUILDS.get(found[1]) if found else None


def windows_named(caption: str) -> WindowsFacts:
    """What a name such as Windows Server 2019 Standard says of a Windows."""
    return WindowsFacts(build_of(caption), caption)


_SHORT = re.compile(r"(?:win|server|ws)? ?(20[012]\d\b.*)", re.IGNORECASE)


def windows_called(text: str) -> WindowsFacts | None:
    """The Windows that somebody calls Server 2022, 2022, WS2019 or Windows 11 Pro; None: no such name."""
    if "windows" in text.lower():
        return windows_named(text)
    short = _SHORT.fullmatch(text.strip())
    return windows_named(f"Windows Server {short[1]}") if short else None


_CLIENTS = (("7", "7"), ("8", "8"), ("9", "10"), ("11", "11"))
_GUEST_IDS = {
    "winlonghorn64": "Microsoft Windows Server 2008",
    "windows7srv64": "Microsoft Windows Server 2008 R2",
    "windows8srv64": "Microsoft Windows Server 2012",
    "windows9srv64": "Microsoft Windows Server 2016 or later",
    "windows2019srv64": "Microsoft Windows Server 2019",
    "windows2019srvnext64": "Microsoft Windows Server 2022",
    "windows2022srvnext64": "Microsoft Windows Server 2025",
    **{
        f"windows{number}{bits}": f"Microsoft Windows {name}"
        for bits in ("", "64")
        for number, name in _CLIENTS
    },
}
"""VirtualMachineGuestOsIdentifier of Windows, without signs. 2012 includes 2012 R2."""


def windows_of_guest_id(guest_id: str) -> WindowsFacts | None:
    """The Windows that a VM's configuration names, as the API or a .vmx file writes it:
    windows2019srv_64Guest, windows2019srv-64. None: unknown, or another system.
    """
    plain = re.sub(r"[_-]|guest$", "", guest_id.lower()).replace("server", "srv")
    return windows_named(_GUEST_IDS[plain]) if plain in _GUEST_IDS else None


TOOLS_KEY = "guestInfo.detailed.data"
"""The extraConfig key with VMware Tools' (11 and later) description of the guest."""

_FIELD = re.compile(r"(\w+)='([^']*)'")
_BANNER = re.compile(r" on (Windows.+?) [\d.]+ <\w+> \(Build (\d+)")


@lru_cache(1024)  # many VMs have the same guest
def windows_of_tools(detail: str, full_name: str = "") -> WindowsFacts | None:
    """From the text under `TOOLS_KEY`, else from Tools' system name.

    `buildNumber='17763' familyName='Windows' prettyName='Windows Server 2019 Standard, 64-bit (Build ...)'`.
    None: unknown, or not Windows. A system name has the build of the release that it names.
    """
    told = dict(_FIELD.findall(detail))
    name = told.get("prettyName") or full_name
    if "windows" not in (told.get("familyName") or name).lower():
        return None
    build = told.get("buildNumber", "")
    known = int(build) if build.isdecimal() and len(build) <= 9 else build_of(name)
    # "Windows Server 2019 Standard" of "Windows Server 2019 Standard, 64-bit (Build 17763.2145)".
    return WindowsFacts(build=known, caption=re.split(r",| \(", name)[0].strip() or None)


def windows_of_banner(version_text: str) -> WindowsFacts | None:
    """From SQL Server's @@VERSION: `... on Windows Server 2019 Standard 10.0 <X64> (Build 17763: )`.

    None for SQL Server on Linux, or another text.
    """
    found = _BANNER.search(version_text)
    return WindowsFacts(build=int(found[2]), caption=found[1]) if found else None
