"""Whether the SQL Server that a connection reached runs inside a VM: facts of both sides, and what they say.

A clone may share its original's name, and on a network of its own even the address. What it can't share is
its power-cycle: only a server that falls silent with the VM and comes back with it runs inside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Literal

Fact = Literal["agrees", "contradicts", "unknown"]

_SLACK_S = 1.0
"""Two clocks, one here and one there, are read at slightly different moments."""
_DRIFT = 0.001
"""Two clocks that nobody sets drift apart by less than this part of the time."""


@dataclass(frozen=True)
class Identity:
    """What the inventory says of the server's address (`vnuma_sql.identity`).

    Without an `address` the VM's own guest addresses count, as VMware Tools report them; with
    `power_cycle_only` no address does.
    """

    address: str | None = None
    power_cycle_only: bool = False

    @property
    def is_stated(self) -> bool:
        """Whether somebody chose it."""
        return self.power_cycle_only or self.address is not None


@dataclass(frozen=True)
class VmSide:
    """A VM that is powered on: its guest's addresses as Tools report them (empty: they report none), and for
    how many seconds it had been on at `at`, a moment of this machine's monotonic clock.
    """

    addresses: frozenset[str]
    age_s: float
    at: float

    def age_at(self, moment: float) -> float:
        """For how many seconds it had been on at another moment of that clock."""
        return self.age_s + moment - self.at


@dataclass(frozen=True)
class ServerSide:
    """A SQL Server: the address that our connection reached, and how many seconds it had been up at `at`.

    None is what it does not show: the address without TCP, the uptime without VIEW SERVER STATE.
    """

    address: str | None
    uptime_s: float | None
    at: float


@dataclass(frozen=True)
class Likeness:
    """What each fact says of a server's being inside a VM."""

    address: Fact
    uptime: Fact
    vm: VmSide
    server: ServerSide
    wanted: frozenset[str]
    """The addresses that were compared with."""

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Sentences without a subject's name: what is impossible for a server inside the VM."""
        return tuple(self._contradictions())

    @property
    def agrees(self) -> bool:
        """Whether every fact is known and agrees."""
        return self.address == self.uptime == "agrees"

    def _contradictions(self) -> Iterator[str]:
        if self.address == "contradicts":
            wanted = ", ".join(sorted(self.wanted))
            yield f"the connection reached {self.server.address}, the guest has {wanted}"
        if self.uptime == "contradicts":
            yield (
                f"SQL Server has been up for {self.server.uptime_s:.0f} s, "
                f"but the VM was powered on {self.vm.age_at(self.server.at):.0f} s ago"
            )

    @property
    def missing(self) -> str:
        """Why not every fact is known; empty when all are."""
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


def compare(vm: VmSide, server: ServerSide, identity: Identity) -> Likeness:
    """What the facts of both sides say."""
    wanted = frozenset({plain(identity.address)}) if identity.address else vm.addresses
    if identity.power_cycle_only or server.address is None or not wanted:
        address: Fact = "unknown"
    else:
        address = "agrees" if server.address in wanted else "contradicts"
    return Likeness(address, _uptime(vm, server), vm, server, wanted)


def _uptime(vm: VmSide, server: ServerSide) -> Fact:
    if server.uptime_s is None:
        return "unknown"
    return "agrees" if began_within(server.uptime_s, vm.age_at(server.at)) else "contradicts"


def began_within(uptime_s: float, age_s: float) -> bool:
    """Whether something that has been up for so long can have begun within the last `age_s` seconds."""
    return uptime_s <= age_s * (1 + _DRIFT) + _SLACK_S


def plain(address: str) -> str:
    """An IP address in one spelling: no zone, and IPv4 where it is mapped into IPv6. Raises ValueError."""
    parsed = ip_address(address.strip().partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(parsed)
