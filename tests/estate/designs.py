"""One VM written in each form that vnuma reads, for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from tests.estate import workbooks
from tests.estate.build import estate_of
from tests.estate.plans import plan, resource
from vnuma.domain.vm.estate import Estate
from vnuma.domain.vm.server import windows_of_tools
from vnuma.domain.vm.setting import TYPED, Value


@dataclass(frozen=True)
class Design:
    """A new VM: sizes in vCPUs and MB, `keys` of extraConfig."""

    vcpus: int = 16
    cores_per_socket: int = 16
    memory: int = 65536
    reservation: int = 0
    limit: int = -1
    cpu_reservation: int = 0
    cpu_limit: int = -1
    cpu_hot_add: bool = False
    memory_hot_add: bool = False
    hardware: int = 19
    keys: dict[str, str] = field(default_factory=dict)
    windows: str = ""
    """The year of a Windows Server; empty: no system is named."""

    @property
    def _guest_id(self) -> str:
        return f"windows{self.windows}srv_64Guest" if self.windows else ""

    def terraform(self, folder: Path) -> Path:
        """As a plan."""
        one = resource(
            num_cpus=self.vcpus,
            num_cores_per_socket=self.cores_per_socket,
            memory=self.memory,
            memory_reservation=self.reservation,
            memory_limit=self.limit,
            cpu_reservation=self.cpu_reservation,
            cpu_limit=self.cpu_limit,
            cpu_hot_add_enabled=self.cpu_hot_add,
            memory_hot_add_enabled=self.memory_hot_add,
            hardware_version=self.hardware,
            extra_config=self.keys,
            guest_id=self._guest_id,
        )
        return _written(folder / "plan.json", json.dumps(plan(one)))

    def vmx(self, folder: Path) -> Path:
        """As ESXi stores it."""
        lines = {
            ".encoding": "UTF-8",
            "virtualHW.version": str(self.hardware),
            "displayName": "sql16",
            "numvcpus": self.vcpus,
            "cpuid.coresPerSocket": self.cores_per_socket,
            "memSize": self.memory,
            "sched.mem.min": self.reservation,
            "sched.mem.max": "unlimited" if self.limit < 0 else self.limit,
            "sched.cpu.min": self.cpu_reservation,
            "sched.cpu.max": "unlimited" if self.cpu_limit < 0 else self.cpu_limit,
            "vcpu.hotadd": str(self.cpu_hot_add).upper(),
            "mem.hotadd": str(self.memory_hot_add).upper(),
            **({"guestOS": f"windows{self.windows}srv-64"} if self.windows else {}),
            **self.keys,
        }
        return _written(folder / "sql16.vmx", "\n".join(f'{key} = "{value}"' for key, value in lines.items()))

    def ovf(self, folder: Path) -> Path:
        """As a template's descriptor."""
        keys = "".join(
            f'<vmw:ExtraConfig vmw:key="{key}" vmw:value="{value}"/>' for key, value in self.keys.items()
        )
        return _written(folder / "sql16.ovf", _OVF.format(design=self, keys=keys, **self._words()))

    def ansible(self, folder: Path) -> Path:
        """As a playbook."""
        options = {
            "name": "sql16",
            "guest_id": self._guest_id or "otherGuest64",
            "hardware": {
                "num_cpus": "{{ sockets * 1 * per_socket }}" if self._whole else self.vcpus,
                "num_cpu_cores_per_socket": "{{ per_socket }}",
                "memory_mb": self.memory,
                "mem_reservation": self.reservation,
                "mem_limit": self.limit,
                "cpu_reservation": self.cpu_reservation,
                "cpu_limit": self.cpu_limit,
                "hotadd_cpu": self.cpu_hot_add,
                "hotadd_memory": self.memory_hot_add,
                "version": str(self.hardware),
            },
            "advanced_settings": [{"key": key, "value": value} for key, value in self.keys.items()],
        }
        play = {
            "hosts": "localhost",
            "vars": {
                "per_socket": self.cores_per_socket,
                "sockets": max(1, self.vcpus // self.cores_per_socket),
            },
            "tasks": [{"name": "Make it", "community.vmware.vmware_guest": options}],
        }
        return _written(folder / "play.yml", yaml.safe_dump([play], sort_keys=False))

    @property
    def _whole(self) -> bool:
        return self.vcpus % self.cores_per_socket == 0

    def table(self, folder: Path) -> Path:
        """As a German design table."""
        row = {
            "Servername": "sql16",
            "vCPU": self.vcpus,
            "Kerne pro Sockel": self.cores_per_socket,
            "Arbeitsspeicher (GB)": f"{self.memory // 1024},0",
            "Reservierung": f"{self.reservation} MB",
            "Speicherlimit": self.limit if self.limit >= 0 else "unbegrenzt",
            "CPU-Reservierung": self.cpu_reservation,
            "CPU-Limit": self.cpu_limit if self.cpu_limit >= 0 else "unbegrenzt",
            "CPU Hot-Add": "ja" if self.cpu_hot_add else "nein",
            "Memory hot add": "wahr" if self.memory_hot_add else "falsch",
            "HW-Version": f"vmx-{self.hardware}",
            "Betriebssystem": f"Microsoft Windows Server {self.windows}" if self.windows else "",
            **self.keys,
        }
        lines = [";".join(map(str, cells)) for cells in (row.keys(), row.values())]
        return _written(folder / "design.csv", "\n".join(lines))

    def full_table(self, folder: Path) -> Path:
        """The same with the columns that no other form has: SQL Server, latency sensitivity."""
        titles, row = self.table(folder).read_text(encoding="utf-8").splitlines()
        titles += ";SQL edition;Latency sensitivity"
        row += ";Standard 2022;normal"
        return _written(folder / "design.csv", f"{titles}\n{row}")

    def rvtools(self, folder: Path) -> Path:
        """As an export of the VM once it exists; one shows no keys."""
        sheets = workbooks.export(vms=1, hosts=1)
        sheets["vInfo"][0] |= {"VM": "sql16", "CPUs": self.vcpus, "Memory": self.memory}
        sheets["vInfo"][0] |= {"HW version": str(self.hardware)}
        sheets["vCPU"][0] |= {"VM": "sql16", "CPUs": self.vcpus, "Cores p/s": self.cores_per_socket}
        sheets["vCPU"][0] |= {"Hot Add": self.cpu_hot_add, "Numa Hotadd Exposed": False}
        sheets["vMemory"][0] |= {"VM": "sql16", "Size MiB": self.memory, "Reservation": self.reservation}
        sheets["vMemory"][0] |= {"Limit": self.limit}
        sheets["vCPU"][0] |= {"Reservation": self.cpu_reservation, "Limit": self.cpu_limit}
        sheets["vMemory"][0] |= {"Memory Reservation Locked To Max": False}
        if self.windows:
            name = f"Microsoft Windows Server {self.windows} (64-bit)"
            sheets["vInfo"][0] |= {"OS according to the VMware Tools": name}
        return workbooks.write(folder / "export.xlsx", sheets)

    def api(self, folder: Path) -> Path:
        """As `govc vm.info -json` shows it once it exists."""
        config: dict[str, Any] = {"name": "sql16", "changeVersion": "1", "version": f"vmx-{self.hardware}"}
        config |= {"guestId": self._guest_id, "extraConfig": []}
        for setting, value in {**self._settings(), "autoCoresPerSocket": False}.items():
            if setting in self.keys:
                config["extraConfig"] += [{"key": setting, "value": value}]
            elif value is not None:
                *parents, leaf = TYPED[setting].path.split(".")
                at = config
                for step in parents:
                    at = at.setdefault(step, {})
                at[leaf] = {"affinitySet": []} if value == () else value
        return _written(folder / "info.json", json.dumps({"virtualMachines": [{"config": config}]}))

    def live(self) -> Estate:
        """As vCenter would show it once it exists."""
        estate = estate_of("sql16")
        (vm,) = estate.vms
        facts = replace(vm.facts, settings=self._settings(), hardware_version=self.hardware)
        guest = windows_of_tools("", f"Microsoft Windows Server {self.windows}") if self.windows else None
        return replace(estate, vms=(replace(vm, facts=facts, absent={}, guest=guest),))

    def _settings(self) -> dict[str, Value]:
        """The settings of the VM once it exists; None: not set."""
        return {
            **dict.fromkeys(TYPED),
            **{"numCPUs": self.vcpus, "numCoresPerSocket": self.cores_per_socket, "memoryMB": self.memory},
            **{"memoryReservation": self.reservation, "memoryReservationLockedToMax": False},
            **{"cpuHotAddEnabled": self.cpu_hot_add, "memoryHotAddEnabled": self.memory_hot_add},
            **{"cpuReservation": self.cpu_reservation, "cpuLimit": self.cpu_limit},
            **{"cpuAffinity": (), "memoryAffinity": (), "memoryLimit": self.limit},
            **{"latencySensitivity": "normal", **self.keys},
        }

    def _words(self) -> dict[str, str]:
        limits = {
            name: f"<rasd:Limit>{value}</rasd:Limit>" if value >= 0 else ""
            for name, value in (("limit", self.limit), ("cpu_limit", self.cpu_limit))
        }
        return {
            "cpu": str(self.cpu_hot_add).lower(),
            "memory": str(self.memory_hot_add).lower(),
            **limits,
        }


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


_OVF = """<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
  xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
  xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"
  xmlns:vmw="http://www.vmware.com/schema/ovf">
  <VirtualSystem ovf:id="sql16"><Info>A VM</Info><Name>sql16</Name>
    <OperatingSystemSection ovf:id="112" vmw:osType="{design._guest_id}"><Info>The system</Info>
    </OperatingSystemSection>
    <VirtualHardwareSection><Info>Hardware</Info>
      <System><vssd:VirtualSystemType>vmx-{design.hardware}</vssd:VirtualSystemType></System>
      <Item><rasd:ElementName>CPUs</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID>
        {cpu_limit}<rasd:Reservation>{design.cpu_reservation}</rasd:Reservation>
        <rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>{design.vcpus}</rasd:VirtualQuantity>
        <vmw:CoresPerSocket ovf:required="false">{design.cores_per_socket}</vmw:CoresPerSocket></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:InstanceID>2</rasd:InstanceID>
        {limit}<rasd:Reservation>{design.reservation}</rasd:Reservation><rasd:ResourceType>4</rasd:ResourceType>
        <rasd:VirtualQuantity>{design.memory}</rasd:VirtualQuantity></Item>
      <vmw:Config ovf:required="false" vmw:key="cpuHotAddEnabled" vmw:value="{cpu}"/>
      <vmw:Config ovf:required="false" vmw:key="memoryHotAddEnabled" vmw:value="{memory}"/>
      {keys}
    </VirtualHardwareSection></VirtualSystem></Envelope>
"""
