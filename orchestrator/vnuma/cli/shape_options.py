"""Options that describe a VM, its hosts and its guest, for verbs that look ahead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import InventoryOption, find_inventory, vm_names
from vnuma.domain.topology.forecast import PlannedGuest, planned_guest
from vnuma.domain.topology.release import MOST_VCPUS, hardware_version_of
from vnuma.domain.topology.vm_location import VmLocation, parse_host
from vnuma.domain.vm.facts import HostFacts
from vnuma.errors import UsageError

_MEMORY = re.compile(r"(?P<gb>[1-9]\d{0,5}) ?(?:GB?|GiB)?", re.IGNORECASE)


def _gigabytes(text: str) -> int:
    found = _MEMORY.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter(f"'{text}' is not a size in GB. Write 256 or 256GB.")
    return int(found["gb"])


HostsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--host-nodes",
        metavar="NxC[/GB][@ESXi]",
        help="A host: NUMA nodes x cores per node / GB per node @ ESXi release, as 2x16/96@8.0. "
        "Repeat it for different hosts.",
    ),
]
EsxiOption = Annotated[str, typer.Option("--esxi", help="ESXi release of --host-nodes without one.")]
ThreadsOption = Annotated[
    int, typer.Option("--threads-per-core", min=1, max=8, help="Threads per core; 2 with hyper-threading.")
]


@dataclass(frozen=True)
class LookAhead:
    """The inputs of `vnuma predict` and `vnuma advise`: a VM, its hosts, and its software."""

    vcpus: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_VCPUS, help="vCPUs of the VM; default with --vm: the VM's own."),
    ] = None
    memory: Annotated[
        int | None,
        typer.Option(
            parser=_gigabytes,
            metavar="GB",
            help="Memory of the VM in GB; default with --vm: the VM's own.",
        ),
    ] = None
    host_nodes: HostsOption = None
    esxi: EsxiOption = "8.0"
    threads_per_core: ThreadsOption = 2
    vm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="An existing VM, on every host of its cluster unless hosts are described.",
            autocompletion=vm_names,
        ),
    ] = None
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="Every host of this cluster.")] = None
    snapshot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read from this snapshot (vnuma inventory save)."),
    ] = None
    inventory: InventoryOption = None
    hardware: Annotated[
        int | None,
        typer.Option(
            min=4,
            max=99,
            help="Virtual hardware version; default: that of new VMs on the oldest host.",
        ),
    ] = None
    edition: Annotated[
        str, typer.Option(help="SQL Server: developer, enterprise, standard, web, express.")
    ] = "developer"
    sql: Annotated[int, typer.Option(metavar="YEAR", help="SQL Server's release.")] = 2022
    windows: Annotated[
        str, typer.Option(metavar="NAME", help="Windows in the guest, such as 'Server 2022'.")
    ] = ""

    def location(self) -> VmLocation:
        """The VM's hosts: as described, or read from a VM's or a cluster's. Raises UsageError."""
        if self.host_nodes:
            return VmLocation(tuple(hosts_of(self.host_nodes, self.esxi, self.threads_per_core)))
        from vnuma.engine.design_check.estates import location_of_cluster, location_of_vm

        asks_vcenter = not self.snapshot and (self.vm or self.cluster)
        inventory = find_inventory(self.inventory) if asks_vcenter else None
        if self.vm:
            return location_of_vm(self.vm, self.snapshot, inventory)
        if self.cluster:
            return location_of_cluster(self.cluster, self.snapshot, inventory)
        raise UsageError(
            "No host given.",
            fix="Describe a host (--host-nodes 2x16/96@8.0), or name a --cluster or a --vm to read.",
        )

    def size(self, location: VmLocation, vcpus: int | None = None) -> tuple[int, int]:
        """vCPUs (`vcpus`, if given) and memory in MB, as requested or the VM's own. Raises UsageError."""
        own = location.vm.settings if location.vm else {}
        count = vcpus or self.vcpus or own.get("numCPUs")
        memory = self.memory * 1024 if self.memory else own.get("memoryMB")
        if not isinstance(count, int) or not isinstance(memory, int):
            raise UsageError(
                "The size of the VM is unknown.", fix="Give --vcpus and --memory, or an existing --vm."
            )
        return count, memory

    def hardware_version(self, location: VmLocation) -> int:
        """The version that was given, the VM's own, or that of the oldest release among the hosts."""
        own = location.vm.hardware_version if location.vm else None
        return (
            self.hardware or own or min(hardware_version_of(host.release.version) for host in location.hosts)
        )

    def guest(self, *, soft_numa: bool = True) -> PlannedGuest:
        """The VM's software. Raises UsageError."""
        return planned_guest(self.edition, self.sql, self.windows, soft_numa=soft_numa)


def where(location: VmLocation) -> str:
    """A short text about the hosts, and what could not be read of them."""
    unread = f"; not read: {', '.join(location.unread)}" if location.unread else ""
    return some([host.name for host in location.hosts]) + unread


def some(names: Sequence[str]) -> str:
    """A few names, or the first ones and the number of others."""
    return ", ".join(names) if len(names) < 4 else f"{names[0]} and {len(names) - 1} more"


def hosts_of(specs: list[str], release: str, threads_per_core: int) -> list[HostFacts]:
    """The described hosts. Raises UsageError."""
    try:
        return [parse_host(spec, release, threads_per_core) for spec in specs]
    except ValueError as error:
        raise UsageError(
            f"--host-nodes: {error}.", fix="For example: --host-nodes 2x16/96 --esxi 8.0"
        ) from error
