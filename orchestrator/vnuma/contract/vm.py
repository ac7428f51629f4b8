"""How a vCenter or ESXi host is asked through one VM, for reading only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from vnuma.contract.suite import Differs, Verdict
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Settings
from vnuma.errors import Interrupted, LeaseLost, VCenterUnreachable, VnumaError
from vnuma.vsphere.facts import paths, settings_of
from vnuma.vsphere.faults import NotNow, name_behind, unexpected
from vnuma.vsphere.read import read_vm
from vnuma.vsphere.session import Session, VmRef

API = "https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/"

TOPOLOGY_HARDWARE = 20
"""The virtual hardware version from which a VM has automatic cores per socket and virtualNuma (ESXi 8.0)."""


def number(settings: Settings, name: str) -> int:
    """A numeric setting. Skips the belief where it is not shown."""
    found = settings.get(name)
    return found if isinstance(found, int) else pytest.skip(f"{name} is not shown")


def settings_now(session: Session, ref: VmRef) -> Settings:
    """A VM's settings, without the location that `read_vm` reads."""
    return settings_of(session.read(ref, paths()).values)


def cpus_for(settings: Settings) -> tuple[int, ...]:
    """As many logical CPUs as the VM has vCPUs."""
    return tuple(range(number(settings, "numCPUs")))


def other_cores(settings: Settings) -> int:
    """Another possible number of cores per socket. Skips the belief of a VM with one vCPU."""
    vcpus, now = number(settings, "numCPUs"), settings["numCoresPerSocket"]
    if vcpus < 2:
        pytest.skip("a VM with one vCPU")
    return 1 if now == vcpus else vcpus


def one_of(seen: object, *words: str) -> None:
    """Raise Differs unless what was seen is one of these."""
    if str(seen) not in words:
        raise Differs(str(seen))


@dataclass(frozen=True)
class AskedVm:
    """One VM at a vCenter or ESXi host."""

    session: Session
    ref: VmRef

    def values(self, *paths: str) -> dict[str, Any]:
        """The VM's properties that are set."""
        return dict(self.session.read(self.ref, paths).values)

    def value(self, path: str) -> Any:
        """One property; None if unset."""
        return self.values(path).get(path)

    def vm(self) -> VmFacts:
        return read_vm(self.session, self.ref)

    def settings(self) -> Settings:
        return settings_now(self.session, self.ref)

    def host(self) -> vim.HostSystem:
        """The VM's host. Skips the belief where it is not shown."""
        found: vim.HostSystem | None = self.value("runtime.host")
        return found or pytest.skip("the VM's host is not shown")

    def of_host(self, path: str) -> Any:
        """A property of the VM's host. Skips the belief where it is not shown."""
        found = self.session.read(self.host(), (path,)).values.get(path)
        return pytest.skip(f"the host's {path} is not shown") if found is None else found

    def require_topology_fields(self) -> None:
        """Skip the belief where the VM has no automatic topology."""
        found = self.vm().hardware_version
        if found < TOPOLOGY_HARDWARE or not self.session.knows(vim.vm.ConfigSpec, "virtualNuma"):
            pytest.skip(f"virtual hardware {found}, API {self.session.about.api_version}")

    def explain(self, error: Exception) -> tuple[Verdict, str]:
        """The error's type, by the vSphere fault's name where there is one; its text would name the server.

        Raises an error that ends the asking: Ctrl-C, a lost lease, an unreachable vCenter.
        """
        if isinstance(error, vmodl.MethodFault):
            error = self.session.translate(error) or unexpected(error, "vSphere")
        if isinstance(error, AttributeError | LookupError | TypeError | ValueError):
            # A missing property, or one of an unexpected type, wherever the belief read it.
            return Verdict.DIFFERS, f"an answer of an unexpected form ({type(error).__name__})"
        away = isinstance(error, VCenterUnreachable) and not isinstance(error, NotNow)
        if away or isinstance(error, Interrupted | LeaseLost) or not isinstance(error, VnumaError):
            raise error
        return Verdict.NOT_EVALUABLE, name_behind(error)
