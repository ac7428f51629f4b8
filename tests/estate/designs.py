"""One VM written in each form of a design, for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from tests.estate.plans import plan, resource


@dataclass(frozen=True)
class Design:
    """A VM of hardware version 19: sizes in vCPUs and MB, `keys` of extraConfig."""

    vcpus: int = 16
    cores_per_socket: int = 16
    memory: int = 65536
    reservation: int = 0
    cpu_hot_add: bool = False
    memory_hot_add: bool = False
    keys: dict[str, str] = field(default_factory=dict)

    def terraform(self, folder: Path) -> Path:
        """As a plan."""
        one = resource(
            num_cpus=self.vcpus,
            num_cores_per_socket=self.cores_per_socket,
            memory=self.memory,
            memory_reservation=self.reservation,
            cpu_hot_add_enabled=self.cpu_hot_add,
            memory_hot_add_enabled=self.memory_hot_add,
            hardware_version=19,
            extra_config=self.keys,
        )
        return _written(folder / "plan.json", json.dumps(plan(one)))

    def vmx(self, folder: Path) -> Path:
        """As ESXi stores it."""
        lines = {
            ".encoding": "UTF-8",
            "virtualHW.version": "19",
            "displayName": "sql16",
            "numvcpus": self.vcpus,
            "cpuid.coresPerSocket": self.cores_per_socket,
            "memSize": self.memory,
            "sched.mem.min": self.reservation,
            "vcpu.hotadd": str(self.cpu_hot_add).upper(),
            "mem.hotadd": str(self.memory_hot_add).upper(),
            **self.keys,
        }
        return _written(folder / "sql16.vmx", "\n".join(f'{key} = "{value}"' for key, value in lines.items()))

    def ovf(self, folder: Path) -> Path:
        """As a template's descriptor."""
        keys = "".join(
            f'<vmw:ExtraConfig vmw:key="{key}" vmw:value="{value}"/>' for key, value in self.keys.items()
        )
        return _written(folder / "sql16.ovf", _OVF.format(design=self, keys=keys, **self._words()))

    def _words(self) -> dict[str, str]:
        return {"cpu": str(self.cpu_hot_add).lower(), "memory": str(self.memory_hot_add).lower()}


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


_OVF = """<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
  xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
  xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"
  xmlns:vmw="http://www.vmware.com/schema/ovf">
  <VirtualSystem ovf:id="sql16"><Info>A VM</Info><Name>sql16</Name>
    <VirtualHardwareSection><Info>Hardware</Info>
      <System><vssd:VirtualSystemType>vmx-19</vssd:VirtualSystemType></System>
      <Item><rasd:ElementName>CPUs</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID>
        <rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>{design.vcpus}</rasd:VirtualQuantity>
        <vmw:CoresPerSocket ovf:required="false">{design.cores_per_socket}</vmw:CoresPerSocket></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:InstanceID>2</rasd:InstanceID>
        <rasd:Reservation>{design.reservation}</rasd:Reservation><rasd:ResourceType>4</rasd:ResourceType>
        <rasd:VirtualQuantity>{design.memory}</rasd:VirtualQuantity></Item>
      <vmw:Config ovf:required="false" vmw:key="cpuHotAddEnabled" vmw:value="{cpu}"/>
      <vmw:Config ovf:required="false" vmw:key="memoryHotAddEnabled" vmw:value="{memory}"/>
      {keys}
    </VirtualHardwareSection></VirtualSystem></Envelope>
"""
