"""What an archive's reader needs: its README, and what a new run takes besides the study file."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from vnuma import __version__
from vnuma.domain.vm.plain_text import data_in_yaml, escaped, in_yaml, listed
from vnuma.domain.vm.provenance import banner
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


def readme(loaded: LoadedRun) -> str:
    """README.md of the archive."""
    run, study = loaded.run, loaded.study
    simulated = banner(loaded.simulated)
    return f"""\
# {run.name}: {study.title or study.name}
{f"{chr(10)}**{simulated}**{chr(10)}" if simulated else ""}
A vNUMA study of {listed(study.vms)}, measured by vnuma {run.product_version}, begun
{run.created_at:%Y-%m-%d %H:%M} UTC, {run.state}. Study file sha256 {loaded.study_sha256}.

| file | what it is |
| --- | --- |
| report.html | the report; needs no network |
| results.json, results.schema.json | every figure, unrounded, and the document's schema |
| results.csv, figures.csv, waits.csv | the comparisons, other figures and waits, one line a value |
| samples.csv, samples.parquet | every iteration, warm-ups included; Parquet only where pyarrow was |
| columns.md | what the columns of those files are, with units |
| tables/ | Table 1 in the paper's layout, other figures and waits by arm: CSV, Markdown, LaTeX |
| charts/ | every chart: SVG, PNG, PDF; a .txt says why one is missing |
| methods.md | how the figures came about, to be quoted |
| study.yml | the study file, as it was run: arms, workload with its T-SQL, design, seed |
| {inventory_name(loaded)} | an inventory for it: where its VMs are reached, without any password |
| versions.json | what it was measured and analysed with: vnuma, driver, ESXi, SQL Server, libraries |
| vnuma.db | the run's own store (SQLite), with all settings, boots and facts |
| manifest.json | a checksum (SHA-256) of every file |

The archive names VMs, hosts and the people who changed a VM. It holds no password.
The checksums show damage and careless changes; they do not prove who made the archive.

## To analyse it again

    vnuma import THIS_FILE          # checks it, analyses it, and says whether the figures are the same
    vnuma report {run.name}         # the page; vnuma results {run.name} --format json: every figure

An imported run takes the next free number if its name is taken; vnuma import says which.

## To do the study again

1. Install vnuma {run.product_version} (versions.json has the rest), and unpack this file into a folder of
   its own: `python -m zipfile -e THIS_FILE FOLDER`
2. {_place(loaded)}
3. In that folder, see what it would change, and for how long:
   `vnuma plan study.yml -i {inventory_name(loaded)}`
4. Run it; the seed in study.yml ({run.seed}) gives the same order of cells:
   `vnuma run study.yml -i {inventory_name(loaded)}`
5. Hold the new run, whose name vnuma run prints, against this one:
   `vnuma compare {run.name} NEW_RUN`

What the machines were like is in report.html under "Configuration", and in vnuma.db (table fact).
"""


def _place(loaded: LoadedRun) -> str:
    """How the reader gets an environment to measure in."""
    if inventory_name(loaded) == LAB_INVENTORY:
        return f"Start the lab that it was measured on: `vnuma lab up {loaded.simulated}`"
    return (
        f"Fill in {inventory_name(loaded)}: it names {listed(loaded.study.vms)} and lacks your addresses, "
        "users and references to passwords"
    )
