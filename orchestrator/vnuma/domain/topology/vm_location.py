"""Where a VM runs, or is to run."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.domain.vm.facts import HostFacts, VmFacts


@dataclass(frozen=True)
class VmLocation:
    """`hosts` begins with the VM's own; `unread` names hosts of its cluster that could not be read.

    `unseen` names what of the VM's settings is not known, as an export's.
    """

    hosts: tuple[HostFacts, ...]
    vm: VmFacts | None = None
    unread: tuple[str, ...] = ()
    simulated: str | None = None
    unseen: tuple[str, ...] = ()
