"""`page_cache` in a Linux guest of a VM that is shaped and booted for each arm, on the lab."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import LabFactory
from tests.machines.on_guest import SHAPED, figures, nodes_of
from tests.support.cli import vnuma
from tests.support.looking import settings_now
from tests.support.site import ask_machine, write_machines
from vnuma.engine.access.places import store_url
from vnuma.report.model.model import load_run
from vnuma.store.open import open_store
from vnuma.store.rows import Outcome

ROOT = Path(__file__).resolve().parents[2]
STUDY: dict[str, Any] = yaml.safe_load((ROOT / "studies/closson-vm.yml").read_text(encoding="utf-8")) | {
    "design": {"blocks": 1, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 2},
    "power": {"tools_timeout_s": 60, "sql_timeout_s": 60, "shutdown_timeout_s": 60},
    "limits": {"attempts_per_cell": 1},
}
STUDY["workload"]["sizes"] = [64]
"""The shipped study, in seconds."""


def written(folder: Path, **changes: Any) -> Path:
    """STUDY with other values, as a file."""
    path = folder / "shaped.yml"
    path.write_text(json.dumps(STUDY | changes), encoding="utf-8")
    return path


def test_a_linux_guest_is_measured_in_the_shape_of_each_arm(tmp_path: Path, lab: LabFactory) -> None:
    """From plan to restore: the guest shows each arm's nodes, remote memory costs, the VM is as before."""
    running = lab(SHAPED)
    study, inventory = written(tmp_path), write_machines(tmp_path, running)
    before = settings_now(running, "linux16")

    planned = vnuma("plan", study, "-i", inventory, "--format", "json")
    ran = vnuma("run", study, "-i", inventory)

    (target,) = json.loads(planned.out)["vms"]
    assert [len(arm["prediction"]["node_sizes"]) for arm in target["arms"]] == [2, 2, 1]
    assert target["replicate"] == "boot"
    assert ran.code == 0, ran.text
    loaded = load_run(open_store(store_url()), "latest")
    (vm,) = loaded.vms
    attempts = loaded.attempts_of(vm, Outcome.VALID)
    assert {one.arm: nodes_of(one) for one in attempts} == NODES
    medians = {one["arm"]: one["median"] for one in figures()}
    assert medians["local"] == pytest.approx(medians["whole"], rel=0.01)
    assert medians["local"] / medians["remote"] == pytest.approx(REMOTE_COST, rel=0.01)
    vnuma("report", "latest", "--output", tmp_path / "page.html")
    page = " ".join((tmp_path / "page.html").read_text(encoding="utf-8").split())
    assert re.search("VM linux16 with 16 vCPUs on esx01, ESXi [^,]*, Linux 6.1.0", page)
    assert "SQL Server VM" not in page
    assert settings_now(running, "linux16") == before
    assert "vnuma" not in ask_machine(running, "ls /var/tmp /dev/shm")


NODES = {"local": 2, "remote": 2, "whole": 1}
REMOTE_COST = 0.30021 / 0.244703
"""Seconds from another physical node over those from the own one (Closson 2009), as the lab has them."""


def test_another_machine_at_the_guests_address_is_not_measured(tmp_path: Path, lab: LabFactory) -> None:
    """Its firmware shows another UUID than the VM's: nothing is written there, and no cell counts."""
    running = lab({**SHAPED, "machines": [*SHAPED["machines"], {"name": "stranger"}]})
    study, inventory = written(tmp_path, arms=STUDY["arms"][:1]), write_machines(tmp_path, running)
    site = json.loads(inventory.read_text(encoding="utf-8"))
    hosts = site["all"]["hosts"]
    stranger = hosts.pop("stranger")
    hosts["linux16"] |= stranger
    kept = "/var/tmp/vnuma-page-cache/read.own"
    ask_machine(running, f"mkdir -p {kept}", "stranger")
    inventory.write_text(json.dumps(site), encoding="utf-8")

    ran = vnuma("run", study, "-i", inventory)

    assert ran.code == 6
    ask_machine(running, f"test -d {kept}", "stranger")
