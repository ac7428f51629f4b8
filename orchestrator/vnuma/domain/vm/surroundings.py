"""What around a VM and its SQL Server may spoil or break a study: plain values, as they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from vnuma.domain.vm.endpoint import ServerSide, VmSide


@dataclass(frozen=True)
class Limit:
    """Less of a resource than a VM has, set on itself or on a resource pool above it: MB or MHz."""

    resource: Literal["memory", "CPU"]
    limit: int
    has: int
    of_pool: bool


@dataclass(frozen=True)
class Surroundings:
    """A VM's neighbours, devices, tasks and guardians, as vSphere shows them. Lists hold names or labels."""

    neighbours: tuple[str, ...] = ()
    """Other VMs that are powered on at its host."""
    powered_on_mb: Mapping[str, int] = field(default_factory=dict)
    """Memory of every VM that is powered on there, itself included, by managed object id."""
    fault_tolerance: bool = False
    running_tasks: tuple[str, ...] = ()
    """Descriptions of tasks on it that run or wait, such as VirtualMachine.migrate."""
    moved_minutes_ago: float | None = None
    """Since the last vMotion among its recent tasks; None: none is known."""
    change_tracking: bool = False
    shared_disks: tuple[str, ...] = ()
    """Disks or controllers that other VMs may write to as well."""
    raw_disks: tuple[str, ...] = ()
    passthrough: tuple[str, ...] = ()
    virtual_tpm: bool = False
    encrypted: bool = False
    managed_by: str | None = None
    high_availability: bool = False
    """Its cluster has vSphere HA."""
    heartbeat_watched: bool = False
    """HA's VM monitoring resets it when VMware Tools send no heartbeat."""
    guest_name: str | None = None
    """The guest's own name, as VMware Tools say; None while they say nothing."""
    running: VmSide | None = None
    """Its guest's addresses and how long it has been on; None for a VM that is off."""
    free_licence: bool | None = None
    """The free hypervisor, whose API only reads; None: the account may not see licences."""
    limits: tuple[Limit, ...] = ()
    """What keeps it from using all its memory or CPU."""
    host_trouble: str | None = None
    """Why its host would not power it on again, as a sentence: disconnected, or in maintenance mode."""


@dataclass(frozen=True)
class ServerUse:
    """Who and what else uses a SQL Server. Lists hold names of databases or programs.

    `not_seen` says what this login could not look at.
    """

    machine_name: str | None = None
    """The name of the machine that it runs on, as Windows has it."""
    side: ServerSide | None = None
    """The address that the connection reached, and how long SQL Server has been up."""
    availability_groups: bool = False
    replica_databases: tuple[str, ...] = ()
    clustered: bool = False
    replicated: tuple[str, ...] = ()
    log_shipped: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    """Backups and restores under way."""
    sessions: tuple[str, ...] = ()
    """The program of each session that is neither ours nor the server's own."""
    not_seen: tuple[str, ...] = ()
