"""Facts around a VM and its SQL Server that may spoil or break a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from vnuma.domain.vm.endpoint import ServerSide, VmSide


@dataclass(frozen=True)
class Limit:
    """A limit below a resource of a VM, set on it or on a resource pool above it: MB or MHz."""

    resource: Literal["memory", "CPU"]
    limit: int
    has: int
    of_pool: bool


@dataclass(frozen=True)
class Surroundings:
    """A VM's neighbours, devices, tasks and managers in vSphere. Lists have names or labels."""

    neighbours: tuple[str, ...] = ()
    """Other running VMs on its host."""
    powered_on_mb: Mapping[str, int] = field(default_factory=dict)
    """Memory of every running VM there, including itself, by managed object id."""
    fault_tolerance: bool = False
    running_tasks: tuple[str, ...] = ()
    """Descriptions of its running or queued tasks, such as VirtualMachine.migrate."""
    moved_minutes_ago: float | None = None
    """Since the last vMotion among its recent tasks; None: unknown."""
    change_tracking: bool = False
    shared_disks: tuple[str, ...] = ()
    """Disks or controllers that other VMs may also write to."""
    raw_disks: tuple[str, ...] = ()
    passthrough: tuple[str, ...] = ()
    virtual_tpm: bool = False
    encrypted: bool = False
    managed_by: str | None = None
    high_availability: bool = False
    """Its cluster has vSphere HA."""
    admission_control: bool = False
    """HA refuses power-ons that leave too little capacity for failovers."""
    heartbeat_watched: bool = False
    """HA's VM monitoring resets it when VMware Tools send no heartbeat."""
    guest_name: str | None = None
    """The guest's own name from VMware Tools; None if not reported."""
    running: VmSide | None = None
    """Its guest's addresses and how long it has been on; None if it is off."""
    free_licence: bool | None = None
    """The free hypervisor, whose API is read-only; None: licences are not visible to the account."""
    limits: tuple[Limit, ...] = ()
    """What prevents it from using all its memory or CPU."""
    host_trouble: str | None = None
    """Why its host would not power it on again, as a sentence: disconnected, or in maintenance mode."""


@dataclass(frozen=True)
class ServerUse:
    """Other users of a SQL Server. Lists have names of databases or programs.

    `not_seen` lists what this login could not read.
    """

    machine_name: str | None = None
    """Its machine's name in Windows."""
    side: ServerSide | None = None
    """The address that the connection reached, and SQL Server's uptime."""
    availability_groups: bool = False
    replica_databases: tuple[str, ...] = ()
    clustered: bool = False
    replicated: tuple[str, ...] = ()
    log_shipped: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    """Backups and restores in progress."""
    sessions: tuple[str, ...] = ()
    """The program of each session other than ours and the server's own."""
    not_seen: tuple[str, ...] = ()
