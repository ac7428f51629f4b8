"""Looking at a lab's VM, and changing it, with pyVmomi alone: not through the product."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim

from tests.support.lab import LabHandle


@contextmanager
def _machines(lab: LabHandle) -> Iterator[list[Any]]:
    """Every VM of a session that ends with the `with`."""
    connect: Any = SmartConnect
    disconnect: Any = Disconnect
    service = connect(
        host=lab.vcenter.host,
        port=lab.vcenter.port,
        user=lab.vcenter.user,
        pwd=lab.vcenter.password,
        sslContext=ssl.create_default_context(cafile=str(lab.vcenter.ca_file)),
    )
    try:
        content = service.RetrieveContent()
        view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
        yield list(view.view)
    finally:
        disconnect(service)


@contextmanager
def _machine(lab: LabHandle, name: str | None) -> Iterator[Any]:
    """The VM of that name, or the first one."""
    with _machines(lab) as found:
        yield next(item for item in found if name in (None, item.name))


def settings_now(lab: LabHandle, vm: str | None = None) -> dict[str, Any]:
    """Shape, affinity, reservation, NUMA keys, mark and power state of a VM as vSphere has them."""
    with _machine(lab, vm) as found:
        return _settings(found)


def settings_of(lab: LabHandle, vms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The same of several VMs, by name, in one session."""
    with _machines(lab) as found:
        by_name = {item.name: item for item in found}
        return {name: _settings(by_name[name]) for name in vms}


def _settings(found: Any) -> dict[str, Any]:
    config = found.config
    return {
        "vcpus": config.hardware.numCPU,
        "cores_per_socket": config.hardware.numCoresPerSocket,
        "affinity": list(config.cpuAffinity.affinitySet) if config.cpuAffinity else [],
        "reservation": config.memoryAllocation.reservation,
        "cpuReservation": config.cpuAllocation.reservation,
        "locked": bool(config.memoryReservationLockedToMax),
        "keys": {o.key: o.value for o in config.extraConfig if o.key.startswith(("numa.", "vnuma."))},
        "power": str(found.runtime.powerState),
    }


def change_by_hand(lab: LabHandle, vm: str | None = None, **fields: Any) -> None:
    """Change a VM behind the product's back, as a colleague in the vSphere Client would."""
    with _machine(lab, vm) as found:
        _ended(found.ReconfigVM_Task(vim.vm.ConfigSpec(**fields)))


def reset_by_hand(lab: LabHandle, vm: str) -> None:
    """Restart a VM without asking its guest."""
    with _machine(lab, vm) as found:
        _ended(found.ResetVM_Task())


def _ended(task: Any) -> None:
    """Wait until it has, without an error."""
    while task.info.state not in ("success", "error"):
        pass
    assert task.info.state == "success", task.info.error


def answer_by_hand(lab: LabHandle, choice: str, vm: str | None = None) -> None:
    """Answer a VM's question, by the key of the choice."""
    with _machine(lab, vm) as found:
        found.AnswerVM(found.runtime.question.id, choice)


def mark_by_hand(lab: LabHandle, text: str, vm: str | None = None) -> None:
    """Write the mark of a run into a VM, as another controller would; empty removes it."""
    change_by_hand(lab, vm, extraConfig=[vim.option.OptionValue(key="vnuma.run", value=text)])


def give_rights(lab: LabHandle, user: str, privileges: Sequence[str], vms: Sequence[str]) -> None:
    """Give a user these privileges on VMs, by one new role."""
    with _machines(lab) as found:
        authorization = _authorization(found[0])
        role = authorization.AddAuthorizationRole(f"given-{len(authorization.roleList)}", list(privileges))
        for item in (vm for vm in found if vm.name in vms):
            given = vim.AuthorizationManager.Permission(
                entity=item, principal=user, group=False, roleId=role, propagate=False
            )
            authorization.SetEntityPermissions(entity=item, permission=[given])


def withdraw_rights(lab: LabHandle, user: str, vm: str) -> None:
    """Take away what a user was given on a VM."""
    with _machine(lab, vm) as found:
        _authorization(found).RemoveEntityPermission(entity=found, user=user, isGroup=False)


def _authorization(found: Any) -> Any:
    return vim.ServiceInstance("ServiceInstance", found._stub).content.authorizationManager


def until(condition: Callable[[], bool], what: str, timeout_s: float = 240) -> None:
    """Come back as soon as the condition holds."""
    deadline, pause = time.monotonic() + timeout_s, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"no {what}"
        pause.wait(0.05)
