"""Preflight of a whole VM: few round trips, and everything that blocks in one message."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import status, vnuma_here
from tests.support.looking import mark_by_hand
from tests.support.site import write_inventory, write_study
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.role import ROLE
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.preflight import plan
from vnuma.engine.preflight.findings import Permit
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.vcenter import VCenter


def test_the_preflight_of_one_vm_takes_thirteen_round_trips_at_most(
    lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Login, logout and the host's limits included, also for a VM that is given by its bare name."""
    used: list[Session] = []

    def remembered(vcenter: VCenter) -> Session:
        used.append(connect(vcenter))
        return used[-1]

    monkeypatch.setattr(plan, "connect", remembered)
    inventory = write_inventory(tmp_path, lab())
    text = inventory.read_text(encoding="utf-8").replace("/DC0/vm/sql16", "sql16")
    inventory.write_text(text, encoding="utf-8")
    study = parse_study(write_study(tmp_path).read_text(encoding="utf-8"), "study")
    target = Inventory(inventory).targets(study.vms)["sql16"]

    planned = plan.plan_shape_of(study, target, Permit())

    assert [finding.id for finding in planned.findings if finding.severity == "block"] == []
    (session,) = used
    assert session.round_trips <= 13


def test_everything_that_blocks_is_reported_together(lab: LabFactory, tmp_path: Path) -> None:
    """From vSphere and from SQL Server, before a run is stored; what is accepted warns."""
    lacking = "VirtualMachine.Config.Resource"
    allowed = ["System.View", "System.Read", *(privilege for privilege in ROLE if privilege != lacking)]
    account = {"user": "limited@vsphere.local", "privileges": allowed}
    around = {"fault_tolerance": True, "devices": ["raw_disk"], "guest_name": "OTHER", "snapshot": "before"}
    use = {"availability_group": ["sales"], "backups": ["sales"]}
    sql = {"version": "15.0.4430.1", "edition": "Developer", "soft_numa": True, "use": use}
    vms = [{"name": "sql16", "around": around, "sql": sql}, {"name": "busy", "memory_gb": 1}]
    running = lab({"vms": vms, "accounts": [account]})
    mark_by_hand(running, '{"run": "theirs.7", "holder": "ann@host", "since": "2026-01-01T00:00:00Z"}')
    inventory = write_inventory(tmp_path, running, user=account["user"])
    hours = {"time_zone": "UTC", "windows": ["Mon-Sun 20:00-20:10"]}
    study = write_study(tmp_path, accept=["P14"], allowed_hours=hours)

    ran = vnuma_here("run", study, "-i", inventory, "--create-only")

    assert ran.code == 5
    named = {line.split()[0] for line in ran.err.splitlines() if line[:1] in "PD"}
    assert named == {"D04", "P00", "P08", "P21", "P25", "P27", "P28"}
    planned = vnuma_here("plan", study, "-i", inventory, "--checks")
    assert {"P06", "P10", "P14"} <= set(re.findall(r"warn  (\w+)", planned.out))
    assert planned.err.count("P08") == 1
    assert status()["runs"] == []
    page = tmp_path / "board.html"
    assert vnuma_here("plan", study, "-i", inventory, "--document", page, "--ticket", "CHG0031").code == 5
    assert {"CHG0031", "P08", "SIMULATED"} <= set(re.findall(r"\w+", page.read_text(encoding="utf-8")))


def test_doctor_names_the_right_that_a_login_lacks(tmp_path: Path, lab: LabFactory) -> None:
    """As plan and run do."""
    running = lab(vms=[{"name": "sql16", "sql": {"logins": {"limited": ["VIEW SERVER STATE"]}}}])
    object.__setattr__(running.vms["sql16"], "user", "limited")
    running.wait_for("sql_listening")

    told = vnuma_here("doctor", "-i", write_inventory(tmp_path, running), "--format", "json")

    (check,) = [one for one in json.loads(told.out)["checks"] if one["subject"] == "SQL Server"]
    assert (check["state"], check["what"]) == ("FAIL", "the login lacks CREATE ANY DATABASE")
