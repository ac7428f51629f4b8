"""The order in which a play takes its VMs, and how many at once: hosts busy, memory bounded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, zip_longest

from vnuma.domain.vm.host_key import HostKey
from vnuma.store.rows import Vm

# Each VM in a play costs a process: 25 MB in a small play, 60 MB in one of 200 VMs, whose parent is larger.
# So many stay below 4 GB.
MAX_FORKS = 56

# Two VMs of each host: one is measured, the next waits for its turn.
PER_HOST = 2


@dataclass(frozen=True)
class PlayOrder:
    """VM names in the order in which a play starts them, and how many it works on at once."""

    order: tuple[str, ...]
    forks: int


def play_order(vms: Iterable[Vm], *, together: bool) -> PlayOrder:
    """VMs of different hosts first, then each host's second, and so on.

    With `together`, all at once as far as memory allows; otherwise two of each host.
    """
    by_host: dict[HostKey, list[str]] = {}
    for vm in vms:
        by_host.setdefault(vm.host_key, []).append(vm.name)
    rounds = chain.from_iterable(zip_longest(*by_host.values()))
    order = tuple(name for name in rounds if name is not None)
    useful = len(order) if together else min(len(order), PER_HOST * len(by_host))
    return PlayOrder(order, max(1, min(useful, MAX_FORKS)))
