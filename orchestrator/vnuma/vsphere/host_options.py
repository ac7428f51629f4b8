"""What a host allows and decides for its VMs: its NUMA options, the most cores per socket."""

from __future__ import annotations

from typing import Any

from pyVmomi import vim, vmodl

from vnuma.domain.vm.facts import VmFacts
from vnuma.errors import PrivilegeMissing, VmNotFound
from vnuma.vsphere.session import Session

OPTIONS = "configManager.advancedOption"
"""The property path of a host's option manager."""


def numa_options(manager: Any) -> dict[str, str] | None:
    """The host's advanced options Numa.*, None where the account may not read them.

    One call for each host: as a property they come only together with a thousand others.
    """
    try:
        options = manager.QueryOptions("Numa.") if manager else None
    except vim.fault.InvalidName:
        return {}
    except (PrivilegeMissing, VmNotFound, vmodl.MethodFault):
        return None
    return None if options is None else {option.key: str(option.value) for option in options}


def most_cores_per_socket(session: Session, vm: VmFacts) -> int | None:
    """The most cores per socket that the VM's host gives a VM of its hardware version; None: not shown.

    It stands in the host's ConfigOption, a document of some hundred kilobytes: for single VMs only.
    https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.vm.VirtualHardwareOption.html
    """
    try:
        browser = session.read(session.vm(vm.moid), ("environmentBrowser",)).values["environmentBrowser"]
        options = browser.QueryConfigOption(f"vmx-{vm.hardware_version}", session.host(vm.host_moid))
    except (KeyError, PrivilegeMissing, VmNotFound, vmodl.MethodFault):
        return None
    cores = options.hardwareOptions.numCoresPerSocket if options and options.hardwareOptions else None
    return cores.max if cores else None
