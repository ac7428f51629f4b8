"""The running lab as an inventory, with the same variables as a real site."""

from __future__ import annotations

from typing import Any

from vnuma import lab
from vnuma.lab import LabMachine, LabState

Hosts = dict[str, dict[str, Any]]

NO_LAB = "No lab is running."
"""How the inventory plugin's error begins, by which it is known again."""


def lab_hosts() -> Hosts:
    """Inventory variables of the running lab's hosts by name; empty when no lab runs.

    If several VMs have the same name, their inventory names include the folder.
    """
    state = lab.status()
    if state is None:
        return {}
    machines = {one.name: machine_variables(one) | shaped_by(state, one.vm) for one in state.machines}
    return _vms(state) | machines


def _vms(state: LabState) -> Hosts:
    password = {"file": str(state.password_file)}
    names = [vm.name for vm in state.vms]
    return {
        (vm.name if names.count(vm.name) == 1 else vm.path.strip("/").replace("/", "_")): {
            **shaped_by(state, vm.path),
            "vnuma_sql": {
                "host": vm.sql_host,
                "port": vm.sql_port,
                "user": vm.sql_user,
                "node_ports": list(vm.node_ports),
                "password": password,
                "ca_file": str(state.ca_file),
            },
        }
        for vm in state.vms
    }


def shaped_by(state: LabState, path: str | None) -> dict[str, Any]:
    """How the VM at that path is shaped; nothing for a machine outside vCenter."""
    if not path:
        return {}
    vcenter = {"host": state.host, "port": state.port, "user": state.user, "ca_file": str(state.ca_file)}
    password = {"file": str(state.password_file)}
    return {
        "vnuma_vm": path,
        "vnuma_vcenter": vcenter | {"password": password},
        "vnuma_test_clone": True,
    }


def machine_variables(machine: LabMachine) -> dict[str, Any]:
    """How Ansible's connection reaches it; the user's own SSH configuration is ignored."""
    return {
        "ansible_host": machine.host,
        "ansible_port": machine.port,
        "ansible_user": machine.user,
        "ansible_ssh_private_key_file": str(machine.key_file),
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={machine.known_hosts} "
        "-o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes",
    }
