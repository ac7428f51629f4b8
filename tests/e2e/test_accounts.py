"""No account is locked and no event log filled: logins are few, and a refused one is not tried again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import status, vnuma, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_of
from tests.support.playbook import play_roles
from tests.support.site import write_inventory, write_study

NAMES = [f"sql-{number}" for number in range(1, 4)]
VMS = [{"name": name, "memory_gb": 8} for name in NAMES]


def three_vms(lab: LabFactory, **overrides: Any) -> LabHandle:
    """A lab with three VMs on one host."""
    return lab(vms=VMS, **overrides)


def wrong_password(folder: Path) -> dict[str, str]:
    """A reference to a wrong password."""
    secret = folder / "wrong"
    secret.write_text("not-the-password\n", encoding="utf-8")
    return {"file": str(secret)}


@pytest.mark.long
def test_a_password_that_is_changed_in_mid_run_is_refused_once_and_the_vms_are_named(
    tmp_path: Path, lab: LabFactory
) -> None:
    """With no login the VMs cannot be restored: exit 7. With the right one they are, by one command."""
    running, names = three_vms(lab), NAMES[:2]
    before = settings_of(running, names)
    study = write_study(tmp_path, vms=names, vcpus=4, reference="1x4", arms=["1x4", "4x1"])
    inventory = write_inventory(tmp_path, running, names)
    failed = running.logins()["failed"]
    running.fault("account_refused", boot=2, times=0)
    running.fault("session_expired", boot=2)

    ran = vnuma("run", study, "-i", inventory)

    assert ran.code == 7, ran.text
    assert running.logins()["failed"] - failed == 1
    assert running.logins()["locked"] == 0
    assert {vm["vm"] for vm in status()["not_at_baseline"]} == set(names)

    running.clear_faults()
    restored = vnuma("restore")

    assert restored.code == 0, restored.text
    assert settings_of(running, names) == before


def test_a_password_that_is_wrong_before_any_change_ends_with_exit_4(tmp_path: Path, lab: LabFactory) -> None:
    """A run that was created and not started has changed nothing: no VM is named as changed."""
    running = three_vms(lab)
    study = write_study(tmp_path, vms=NAMES, vcpus=4, reference="1x4", arms=["1x4", "4x1"])
    inventory = write_inventory(tmp_path, running, NAMES)
    created = vnuma("run", study, "-i", inventory, "--create-only")
    assert created.code == 0, created.text
    running.fault("account_refused", times=0)

    ran = vnuma("run", "--resume", "small.1")

    assert ran.code == 4, ran.text
    assert running.logins()["failed"] == 1
    assert status()["not_at_baseline"] == []


def test_a_sql_login_that_is_refused_before_the_first_change_blocks_the_run(
    tmp_path: Path, lab: LabFactory
) -> None:
    """No cell could log in: the VM is not power-cycled for it. doctor, which only looks, tries once."""
    running = lab()
    before = settings_of(running, ["sql16"])
    inventory = write_inventory(tmp_path, running)
    written = json.loads(inventory.read_text(encoding="utf-8"))
    host = written["all"]["children"]["vnuma_vms"]["hosts"]["sql16"]
    host["vnuma_sql"]["password"] = wrong_password(tmp_path)
    inventory.write_text(json.dumps(written), encoding="utf-8")

    looked = vnuma("doctor", "-i", inventory)

    assert looked.code == 4, looked.text
    assert running.sql_logins()["failed"] == 1

    ran = vnuma("run", write_study(tmp_path), "-i", inventory)

    assert ran.code == 5, ran.text
    assert running.sql_logins()["failed"] <= 4
    assert settings_of(running, ["sql16"]) == before
    assert not [event for event in running.events if event["event"] == "power_off"]


@pytest.mark.long
def test_a_sql_login_that_is_refused_after_a_boot_is_tried_three_times_at_most(
    tmp_path: Path, lab: LabFactory
) -> None:
    """In all of the run, whatever further attempts its cells have: then the VM waits for a person."""
    running = lab(faults=[{"kind": "login_refused", "times": 0}])
    before = settings_of(running, ["sql16"])
    again = {"attempts_per_cell": 3}
    study = write_study(tmp_path, design={"blocks": 3}, power={"sql_timeout_s": 2}, limits=again)

    ran = vnuma("run", study, "-i", write_inventory(tmp_path, running))

    assert ran.code == 6, ran.text
    assert running.sql_logins()["failed"] == 3
    assert settings_of(running, ["sql16"]) == before
    assert status()["runs"][0]["valid"] == 0


def test_one_login_serves_all_vms_and_a_refused_one_is_not_repeated(tmp_path: Path, lab: LabFactory) -> None:
    """A play that no run launched shares a session, which ends with it; so do plan and doctor."""
    running = three_vms(lab)
    gate = {"design_check": {"design_check_fail_on": "never"}}
    study = write_study(tmp_path, vms=NAMES, vcpus=4, reference="1x4", arms=["1x4", "4x1"])
    inventory = write_inventory(tmp_path, running, NAMES)

    passed = play_roles(tmp_path, inventory, gate)
    planned = vnuma_here("plan", study, "-i", inventory)

    assert len(passed.all("design_check")) == len(NAMES), passed.text
    assert planned.code in (0, 5), planned.text
    assert running.logins() == {"succeeded": 2, "failed": 0, "locked": 0}
    assert running.open_sessions() == 0

    wrong = write_inventory(tmp_path, running, NAMES, password=wrong_password(tmp_path))
    refused = play_roles(tmp_path, wrong, gate).all("design_check")
    looked = vnuma_here("doctor", "-i", wrong)

    assert {task["error"] for task in refused} == {"AccountRefused"}
    assert looked.code == 4, looked.text
    assert running.logins()["failed"] == 2
