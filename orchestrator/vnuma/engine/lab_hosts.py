"""The running lab as an inventory: the same variables that a real site writes down."""

from __future__ import annotations

from typing import Any

from vnuma import lab


def lab_hosts() -> dict[str, dict[str, Any]]:
    """Inventory variables of the running lab's VMs by name; none when no lab runs.

    Of several VMs with one name each gets its folder in the inventory name.
    """
    state = lab.status()
    if state is None:
        return {}
    password = {"file": str(state.password_file)}
    names = [vm.name for vm in state.vms]
    return {
        (vm.name if names.count(vm.name) == 1 else vm.path.strip("/").replace("/", "_")): {
            "vnuma_vm": vm.path,
            "vnuma_vcenter": {
                "host": state.host,
                "port": state.port,
                "user": state.user,
                "password": password,
                "ca_file": str(state.ca_file),
            },
            "vnuma_sql": {
                "host": vm.sql_host,
                "port": vm.sql_port,
                "user": vm.sql_user,
                "node_ports": list(vm.node_ports),
                "password": password,
                "encrypt": "no",
            },
            "vnuma_test_clone": True,
        }
        for vm in state.vms
    }
