"""A virtual CPU topology: sockets x cores per socket."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from vnuma.domain.vm.setting import Settings

_PATTERN = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")


@dataclass(frozen=True, order=True)
class Topology:
    """`sockets` virtual sockets of `cores_per_socket` cores; written `2x8`."""

    sockets: int
    cores_per_socket: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `2x8`. Raises ValueError with a sentence for anything else."""
        match = _PATTERN.fullmatch(text.strip())
        if not match:
            raise ValueError(f"'{text}' is not a topology; write sockets x cores per socket, as in 2x8")
        return cls(int(match[1]), int(match[2]))

    @property
    def vcpus(self) -> int:
        """Number of virtual CPUs: the product."""
        return self.sockets * self.cores_per_socket

    def __str__(self) -> str:
        return f"{self.sockets}x{self.cores_per_socket}"


def topologies(vcpus: int) -> tuple[Topology, ...]:
    """Every topology with that many vCPUs, fewest sockets first."""
    return tuple(Topology(n, vcpus // n) for n in range(1, vcpus + 1) if vcpus % n == 0)


def partial_socket(settings: Settings) -> str:
    """Why a VM with these vCPUs and cores per socket does not power on; empty if it does, or unknown.

    vSphere may store such a shape, but the power-on fails with "Virtual core count is imperfect divisor of
    CPUs" (https://blog.solori.net/2010/11/08/short-take-vsphere-multi-core-virtual-machines/).
    """
    vcpus, per_socket = settings.get("numCPUs"), settings.get("numCoresPerSocket")
    if not isinstance(vcpus, int) or not isinstance(per_socket, int) or per_socket < 1:
        return ""
    if vcpus % per_socket == 0:
        return ""
    return f"a VM of {vcpus} vCPUs with {per_socket} cores per socket does not power on (T01)"


def unfit_node_size(vcpus: int, per_socket: int | None, size: int) -> str:
    """What `size` cores per NUMA node do wrong, so that the VM does not power on (T13); empty if nothing.

    `per_socket` is None where vSphere chooses it. The pairs that fit: vm-operator's
    virtualmachine_compute_types.go.
    """
    if per_socket is None:
        return "do not work with automatic cores per socket"
    if vcpus % size:
        return f"do not divide {vcpus} vCPUs"
    if size % per_socket and per_socket % size:
        return f"are neither a multiple nor a divisor of {per_socket} cores per socket"
    return ""
