"""Which host a VM loads, across sites: names of hosts are unique in one vCenter only."""

from __future__ import annotations

HostKey = tuple[str, str]
"""The vCenter's instance UUID, or of a host without vCenter its hardware's; and the host's name there."""


def host_key(vm_key: str, host_name: str) -> HostKey:
    """The host of this name that the VM of this key is on; a key begins with its vCenter."""
    return vm_key.partition("/")[0], host_name
