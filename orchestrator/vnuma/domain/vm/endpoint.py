"""Decide whether a connected SQL Server runs inside a VM, by comparing facts of both.

A clone may have its original's name, and on an isolated network even its address, but not its power-cycle:
only the server inside the VM falls silent and comes back with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Literal

Fact = Literal["agrees", "contradicts", "unknown"]

_SLACK_S = 1.0
"""The two clocks are read at slightly different times."""
_DRIFT = 0.001
"""Maximum relative drift of two clocks that are not adjusted."""


@dataclass(frozen=True)
class Identity:
    """The server's expected address in the inventory (`vnuma_sql.identity`).

    Without an `address` the VM's guest addresses from VMware Tools count; with `power_cycle_only` no address
    does.
    """

    address: str | None = None
    power_cycle_only: bool = False

    @property
    def is_stated(self) -> bool:
        """Whether the inventory sets it."""
        return self.power_cycle_only or self.address is not None


@dataclass(frozen=True)
class VmSide:
    """A running VM: its guest's addresses from Tools (empty: none reported), and the seconds it had been on
    at `at`, a time of this machine's monotonic clock.
    """

    addresses: frozenset[str]
    age_s: float
    at: float

    def age_at(self, moment: float) -> float:
        """The seconds it had been on at another time of that clock."""
        return self.age_s + moment - self.at


@dataclass(frozen=True)
class ServerSide:
    """A SQL Server: the address reached, and the seconds it had been up at `at`.

    None if not shown: the address without TCP, the uptime without VIEW SERVER STATE.
    """

    address: str | None
    uptime_s: float | None
    at: float


@dataclass(frozen=True)
class IdentityComparison:
    """What each fact says about whether a server runs inside a VM."""

    address: Fact
    uptime: Fact
    vm: VmSide
    server: ServerSide
    wanted: frozenset[str]
    """The addresses that were compared with."""

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Sentences without a subject's name about what is impossible for a server inside the VM."""
        said = []
        if self.address == "contradicts":
            wanted = ", ".join(sorted(self.wanted))
            said.append(f"the connection reached {self.server.address}, the guest has {wanted}")
        if self.uptime == "contradicts":
            said.append(
                f"SQL Server has been up for {self.server.uptime_s:.0f} s, "
                f"but the VM was powered on {self.vm.age_at(self.server.at):.0f} s ago"
            )
        return tuple(said)

    @property
    def agrees(self) -> bool:
        """Whether every fact is known and matches."""
        return self.address == self.uptime == "agrees"

    @property
    def missing(self) -> str:
        """Why some facts are unknown; empty when all are known."""
        said = []
        if self.server.address is None:
            said.append("SQL Server reports no address for this connection")
        elif self.address == "unknown":
            said.append(
                "vnuma_sql.identity relies on the power-cycle"
                if self.wanted
                else "VMware Tools report no address of the guest"
            )
        if self.uptime == "unknown":
            said.append("the login may not read when SQL Server started")
        return "; ".join(said)


def compare(vm: VmSide, server: ServerSide, identity: Identity) -> IdentityComparison:
    """What the facts of both sides say."""
    wanted = frozenset({plain(identity.address)}) if identity.address else vm.addresses
    if identity.power_cycle_only or server.address is None or not wanted:
        address: Fact = "unknown"
    else:
        address = "agrees" if server.address in wanted else "contradicts"
    if server.uptime_s is None:
        uptime: Fact = "unknown"
    else:
        uptime = "agrees" if began_within(server.uptime_s, vm.age_at(server.at)) else "contradicts"
    return IdentityComparison(address, uptime, vm, server, wanted)


def began_within(uptime_s: float, age_s: float) -> bool:
    """Whether something with that uptime can have started within the last `age_s` seconds."""
    return uptime_s <= age_s * (1 + _DRIFT) + _SLACK_S


def plain(address: str) -> str:
    """An IP address in canonical form: no zone, and IPv4 if mapped into IPv6. Raises ValueError."""
    parsed = ip_address(address.strip().partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(parsed)


_ENTRY = re.compile(r"\s*(?P<port>[0-9]{1,5})\s*(?:\[\s*(?P<mask>-1|0[xX][0-9A-Fa-f]+|[0-9]+)\s*\])?\s*")


def ports_of(setting: str) -> tuple[int, ...]:
    """The ports of a setting, in order. Raises ValueError for an invalid one."""
    found = []
    for part in setting.split(","):
        entry = _ENTRY.fullmatch(part)
        if entry is None or not 0 < int(entry["port"]) < 65536:
            raise ValueError(f"'{part.strip()}' in TcpPort '{setting}' is not a port")
        found.append(int(entry["port"]))
    return tuple(found)


def node_mask(nodes: Iterable[int]) -> str:
    """The mask of those SQLOS nodes: `0x3` for 0 and 1."""
    return hex(sum(1 << node for node in set(nodes)))


def mapped(before: str, ports: Sequence[int], nodes: Mapping[int, Sequence[int]]) -> str:
    """The setting with one more port each for the first and the last memory node.

    `before` stays in front, so that its clients keep their port; `nodes` are SQLOS nodes by memory node.
    Neighbouring memory nodes may share a physical node; the first and the last are least likely to.
    """
    ends = (min(nodes), max(nodes))
    extra = [f"{port}[{node_mask(nodes[node])}]" for port, node in zip(ports, ends, strict=False)]
    return ",".join([before, *extra])
