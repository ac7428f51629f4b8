"""A site for a test: an inventory that points at a lab, and small studies."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabHandle
from vnuma.engine.access.host_variables import machine_variables, shaped_by

SMALL: dict[str, Any] = {
    "name": "small",
    "vm": "sql16",
    "vcpus": 16,
    "reference": "1x16",
    "arms": ["1x16", "4x4"],
    "all_arms": {"affinity": "physical_cores", "memory_reservation": "locked"},
    "design": {"blocks": 1, "seed": 3, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 2},
    "workload": {"sizes": [20], "forms": ["client"]},
    "dataset": {"transaction_history_rows": 200, "sales_order_detail_rows": 200},
    "quiet": {"for_s": 0},
    "power": {"tools_timeout_s": 60, "sql_timeout_s": 60, "shutdown_timeout_s": 60, "vcenter_retry_s": 60},
    "limits": {"attempts_per_cell": 1, "max_failed_cells": 99},
}
"""A study of seconds: two cells of two iterations each."""


def write_study(folder: Path, **changes: Any) -> Path:
    """SMALL with other values; a mapping is merged with the one that is there, another workload is not.

    None in a mapping leaves its field out.
    """
    study = {name: value for name, value in SMALL.items() if name != "vm" or "vms" not in changes}
    for name, value in changes.items():
        here = study.get(name)
        if isinstance(here, dict) and isinstance(value, dict) and value.get("name") == here.get("name"):
            value = {key: one for key, one in {**here, **value}.items() if one is not None}
        study[name] = value
    path = folder / f"{study['name']}.yml"
    path.write_text(json.dumps(study, indent=1), encoding="utf-8")
    return path


def write_machines(folder: Path, lab: LabHandle) -> Path:
    """An inventory of the lab's Linux machines, as its own tells them; skips without ssh, but not in CI."""
    if shutil.which("ssh") is None:
        pytest.skip("no SSH client: Debian: apt install openssh-client")
    path = folder / "machines.json"
    hosts = {
        machine.name: machine_variables(machine) | shaped_by(lab.state, machine.vm)
        for machine in lab.state.machines
    }
    path.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    return path


def ask_machine(lab: LabHandle, script: str, name: str | None = None) -> str:
    """What a script prints on the lab's Linux machine of that name, or its only one. It has to succeed."""
    (machine,) = [one for one in lab.state.machines if name in (None, one.name)]
    known = f"UserKnownHostsFile={machine.known_hosts}"
    where = ["-F", "none", "-i", str(machine.key_file), "-o", known, "-p", str(machine.port)]
    command = ["ssh", *where, f"{machine.user}@{machine.host}", script]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    ).stdout


def write_inventory(
    folder: Path,
    lab: LabHandle,
    vms: Iterable[str] | None = None,
    sql_ports: Mapping[str, int] | None = None,
    **vcenter: Any,
) -> Path:
    """An inventory of the lab's VMs; `vcenter` replaces fields of vnuma_vcenter, `sql_ports` ports by VM."""
    secret = folder / "password"
    secret.write_text(lab.vcenter.password + "\n", encoding="utf-8")
    secret.chmod(0o600)
    server = {
        "host": lab.vcenter.host,
        "port": lab.vcenter.port,
        "user": lab.vcenter.user,
        "password": {"file": str(secret)},
        "ca_file": str(lab.vcenter.ca_file),
    }
    hosts = {
        name.strip("/").replace("/", "_"): {
            "vnuma_vm": name if name.startswith("/") else lab.vms[name].path,
            "vnuma_test_clone": True,
            "vnuma_vcenter": server | vcenter,
            "vnuma_sql": {
                "host": lab.vms[name].host,
                "port": (sql_ports or {}).get(name, lab.vms[name].port),
                "user": lab.vms[name].user,
                "node_ports": list(lab.vms[name].node_ports),
                "password": {"file": str(secret)},
                "ca_file": str(lab.vcenter.ca_file),
            },
        }
        for name in (vms or lab.vms)
    }
    path = folder / "hosts.yml"
    path.write_text(json.dumps({"all": {"children": {"vnuma_vms": {"hosts": hosts}}}}), encoding="utf-8")
    return path
