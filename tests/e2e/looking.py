"""Looking at a lab's VM with pyVmomi alone, not through the product."""

from __future__ import annotations

import ssl
from typing import Any

from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim

from tests.support.lab import LabHandle


def settings_now(lab: LabHandle, vm: str | None = None) -> dict[str, Any]:
    """Shape, affinity, reservation, NUMA keys, mark and power state of a VM as vSphere has them."""
    context = ssl.create_default_context(cafile=str(lab.vcenter.ca_file))
    service = SmartConnect(
        host=lab.vcenter.host,
        port=lab.vcenter.port,
        user=lab.vcenter.user,
        pwd=lab.vcenter.password,
        sslContext=context,
    )
    try:
        content = service.RetrieveContent()
        view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
        found = next(item for item in view.view if vm in (None, item.name))
        config = found.config
        return {
            "vcpus": config.hardware.numCPU,
            "cores_per_socket": config.hardware.numCoresPerSocket,
            "affinity": list(config.cpuAffinity.affinitySet) if config.cpuAffinity else [],
            "reservation": config.memoryAllocation.reservation,
            "locked": bool(config.memoryReservationLockedToMax),
            "keys": {o.key: o.value for o in config.extraConfig if o.key.startswith(("numa.", "vnuma."))},
            "power": str(found.runtime.powerState),
        }
    finally:
        Disconnect(service)


def change_by_hand(lab: LabHandle, **fields: Any) -> None:
    """Change a VM behind the product's back, as a colleague in the vSphere Client would."""
    context = ssl.create_default_context(cafile=str(lab.vcenter.ca_file))
    service = SmartConnect(
        host=lab.vcenter.host,
        port=lab.vcenter.port,
        user=lab.vcenter.user,
        pwd=lab.vcenter.password,
        sslContext=context,
    )
    try:
        content = service.RetrieveContent()
        view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
        task = view.view[0].ReconfigVM_Task(vim.vm.ConfigSpec(**fields))
        while task.info.state not in ("success", "error"):
            pass
        assert task.info.state == "success", task.info.error
    finally:
        Disconnect(service)
