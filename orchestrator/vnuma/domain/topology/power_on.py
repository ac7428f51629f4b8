"""The properties of VM and host that affect a power-on's vNUMA layout."""

from __future__ import annotations

from vnuma.domain.topology.layout import HostShape
from vnuma.domain.topology.release import (
    DEFAULT_MINIMUM_VCPUS,
    MINIMUM,
    MINIMUM_HARDWARE,
    PREFER_HT,
    VIRTUAL_NUMA_HARDWARE,
    VIRTUAL_NUMA_SINCE,
    VNUMA_SINCE,
)
from vnuma.domain.vm.setting import Settings, Value


class PowerOn:
    """One power-on: the host, and the VM's settings by lower-case name."""

    def __init__(self, host: HostShape, settings: Settings, hardware_version: int) -> None:
        self.host = host
        self.keys = {name.lower(): value for name, value in settings.items()}
        self.hardware = hardware_version
        self.vcpus = self.number("numCPUs")
        # vSphere also shows numbers that it chose itself; they have no effect.
        automatic = self.true("autoCoresPerSocket")
        self.per_socket = 1 if automatic else self.number("numCoresPerSocket") or 1
        self.stated_sockets = not automatic and self.number("numCoresPerSocket") > 1
        threads = host.threads_per_core if self.true(PREFER_HT) else 1
        self.capacity = max(1, host.cores_per_node * threads)

    @property
    def may_have_vnuma(self) -> bool:
        """Whether release, hardware and the number of vCPUs allow a vNUMA topology at all."""
        enough = self.vcpus >= (self.number(MINIMUM) or DEFAULT_MINIMUM_VCPUS)
        return self.host.release >= VNUMA_SINCE and self.hardware >= MINIMUM_HARDWARE and enough

    @property
    def virtual_numa(self) -> bool:
        """Whether release and hardware have virtualNuma."""
        return self.host.release >= VIRTUAL_NUMA_SINCE and self.hardware >= VIRTUAL_NUMA_HARDWARE

    @property
    def node_size(self) -> int:
        """virtualNuma.coresPerNumaNode as set manually; 0: automatic."""
        return 0 if self.true("autoCoresPerNumaNode") else self.number("coresPerNumaNode")

    def number(self, name: str) -> int:
        """A setting as a number; 0 if it is not one."""
        return int_of(self.keys.get(name.lower()))

    def true(self, name: str) -> bool:
        """Whether a setting is on."""
        return true_of(self.keys.get(name.lower()))


def int_of(value: Value) -> int:
    """A value as a number; 0 if it is not one."""
    try:
        return int(str(value))
    except ValueError:
        return 0


def true_of(value: Value) -> bool:
    """Whether a value is a switch that is on."""
    return str(value).strip().lower() in {"true", "1"}


def false_of(value: Value) -> bool:
    """Whether a value is a switch that is off."""
    return str(value).strip().lower() in {"false", "0"}
