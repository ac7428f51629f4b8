"""A host's settings that affect its VMs: NUMA options, and the most cores per socket."""

from __future__ import annotations

from typing import Any

from pyVmomi import vim, vmodl

from vnuma.domain.vm.facts import VmFacts
from vnuma.errors import PrivilegeMissing, VmNotFound
from vnuma.vsphere.session import Session

OPTIONS = "configManager.advancedOption"
"""The property path of a host's option manager."""


def numa_options(manager: Any) -> dict[str, str] | None:
    """The host's advanced options Numa.*; None if the account may not read them.

    One call per host: as a property they come only with a thousand others.
    """
    try:
        options = manager.QueryOptions("Numa.") if manager else None
    except vim.fault.InvalidName:
        return {}
    except (PrivilegeMissing, VmNotFound, vmodl.MethodFault):
        return None
    return None if options is None else {option.key: str(option.value) for option in options}


def most_cores_per_socket(session: Session, vm: VmFacts) -> int | None:
    """The most cores per socket on the VM's host for its hardware version; None if not shown.

    Part of the host's ConfigOption, a document of some hundred kilobytes, so only for single VMs.
    https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.vm.VirtualHardwareOption.html
    """
    try:
        browser = session.read(session.vm(vm.moid), ("environmentBrowser",)).values["environmentBrowser"]
        options = browser.QueryConfigOption(f"vmx-{vm.hardware_version}", session.host(vm.host_moid))
    except (KeyError, PrivilegeMissing, VmNotFound, vmodl.MethodFault):
        return None
    cores = options.hardwareOptions.numCoresPerSocket if options and options.hardwareOptions else None
    return cores.max if cores else None
