"""The hosts on which a VM runs or may run."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.domain.vm.facts import HostFacts, VmFacts


@dataclass(frozen=True)
class VmLocation:
    """`hosts` starts with the VM's own; `unread` names unreadable hosts of its cluster.

    `unseen` names unknown settings of the VM, as in an export.
    """

    hosts: tuple[HostFacts, ...]
    vm: VmFacts | None = None
    unread: tuple[str, ...] = ()
    simulated: str | None = None
    unseen: tuple[str, ...] = ()
