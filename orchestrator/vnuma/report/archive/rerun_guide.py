"""What a reader needs besides the study file to run it again: inventory and versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from vnuma import __version__
from vnuma.domain.vm.plain_text import data_in_yaml, escaped, in_yaml
from vnuma.report.model.machine_words import machine_of
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Vm

LAB_INVENTORY = "lab.vnuma.yml"
INVENTORY = "hosts.yml"
_LIBRARIES = ("numpy", "scipy", "SQLAlchemy", "pyvmomi", "pyodbc", "ansible-core")


def inventory_name(loaded: LoadedRun) -> str:
    """The inventory's file name: Ansible recognises the lab's plugin by its ending."""
    return LAB_INVENTORY if _in_lab(loaded) else INVENTORY


def inventory(loaded: LoadedRun) -> str:
    """An inventory for the study's VMs: the lab's own, or one to complete. It never contains a password."""
    if _in_lab(loaded):
        return (
            "---\n# The VMs of the running lab (vnuma lab up). Everything measured on them is simulated.\n"
            "plugin: vnuma.vnuma.lab\n"
        )
    machines = [vm for vm in loaded.vms if machine_of(loaded, vm)]
    others = [vm for vm in loaded.vms if vm not in machines]
    lines = [
        "---",
        f"# Where {escaped(loaded.run.name)} is measured again. Fill in what begins with YOUR_; a password",
        "# is a reference ({env: NAME}, {file: PATH}, {vault: FILE, key: NAME}), never the password itself.",
        "all:",
    ]
    if machines:
        lines += ["  hosts:", *(line for vm in machines for line in _machine(vm))]
    if others:
        lines += [*_VCENTER, *(line for vm in others for line in _vm(vm))]
    return "\n".join(lines) + "\n"


def versions(loaded: LoadedRun) -> str:
    """As JSON: the versions that measured and analysed, and the seed and study that give the same order."""
    run = loaded.run
    document = {
        "run": run.name,
        "simulated": run.simulated,
        "study_sha256": loaded.study_sha256,
        "seed": run.seed,
        "measured_with": {
            "vnuma": run.product_version,
            "driver": _driver(run.driver),
            "vms": [_measured(loaded, vm) for vm in loaded.vms],
        },
        "analysed_with": {
            "vnuma": __version__,
            "python": platform.python_version(),
            "libraries": [{"name": name, "version": version(name)} for name in _LIBRARIES],
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _in_lab(loaded: LoadedRun) -> bool:
    return loaded.simulated is not None and not any(machine_of(loaded, vm) for vm in loaded.vms)


_VCENTER = (
    "  children:",
    "    vnuma_vms:",
    "      vars:",
    "        vnuma_vcenter:",
    "          host: YOUR_VCENTER",
    "          user: YOUR_USER",
    "          password: {env: VNUMA_VCENTER_PASSWORD}",
    "      hosts:",
)


def _vm(vm: Vm) -> list[str]:
    return [
        f"        {in_yaml(vm.name)}:",
        f"          vnuma_vm: {data_in_yaml(vm.path)} # its path when it was measured; yours may differ",
        "          vnuma_test_clone: false # true once it is one: it is power-cycled many times",
        "          vnuma_sql:",
        "            host: YOUR_SQL_SERVER",
        "            user: YOUR_LOGIN",
        "            password: {env: VNUMA_SQL_PASSWORD}",
    ]


def _machine(vm: Vm) -> list[str]:
    local = vm.name == "localhost"
    where = "ansible_connection: local" if local else "ansible_host: YOUR_MACHINE"
    return [f"    {in_yaml(vm.name)}:", f"      {where}"]


def _driver(driver: object) -> Mapping[str, Any] | None:
    """The driver without its path on the measuring machine."""
    if not isinstance(driver, Mapping):
        return None
    return {key: driver[key] for key in ("kind", "name", "version", "encryption") if key in driver}


def _measured(loaded: LoadedRun, vm: Vm) -> dict[str, Any]:
    host, machine = loaded.vm_facts(vm, "host"), machine_of(loaded, vm)
    servers = loaded.attempt_facts(vm, "boot", "server").values()
    return {
        "vm": vm.name,
        "esxi": host.get("esxi"),
        "kernel": machine.get("kernel"),
        "sql_server": list(dict.fromkeys(server.get("version") for server in servers)),
    }
