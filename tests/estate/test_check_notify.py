"""A recorded check notifies people by a real server on loopback, and never fails because of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.support.cli import Ran, vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from tests.support.told import web_server
from tests.vsphere.support import vcenter_of
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm
from vnuma.vsphere.wait import wait_for_task

SITE = {"name": "estate", "esxi": {"version": "8.0.2"}, "vms": [{"name": "sql16", "power": "off"}]}


@pytest.fixture(autouse=True)
def loopback_needs_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine needs for the internet."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def notified(folder: Path, lab: LabHandle, address: str, **vcenter: Any) -> Path:
    """An inventory whose one host notifies a web server."""
    secret = folder / "url"
    secret.write_text(f"{address}/hook\n", encoding="utf-8")
    secret.chmod(0o600)
    file = write_inventory(folder, lab, **vcenter)
    document = json.loads(file.read_text(encoding="utf-8"))
    for host in document["all"]["children"]["vnuma_vms"]["hosts"].values():
        host["vnuma_notify"] = [{"webhook": {"url": {"file": str(secret)}, "tls": "none"}}]
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def recorded(folder: Path, inventory: Path, *more: str | Path) -> Ran:
    """A recorded check of everything."""
    store = f"sqlite:///{folder}/checks.db"
    return vnuma_here("check", "--all", "--record", "-i", inventory, "--store", store, *more)


def hot_add(lab: LabHandle) -> None:
    """Somebody switches CPU hot-add on, and another shape: the check then finds more."""
    with connect(vcenter_of(lab)) as session:
        ref: Any = find_vm(session, "sql16")
        spec = vim.vm.ConfigSpec(cpuHotAddEnabled=True, numCPUs=16, numCoresPerSocket=1)
        wait_for_task(session, ref.ReconfigVM_Task(spec), 60, "by hand")


def test_new_findings_and_drift_are_sent_once_there_is_something_to_compare(
    lab: LabFactory, tmp_path: Path
) -> None:
    """The first check is silent; after somebody's change new findings, and drift with its author."""
    running, before = lab(SITE), tmp_path / "before.json"
    with web_server(None) as told:
        inventory = notified(tmp_path, running, told.address)
        assert vnuma_here("inventory", "save", before, "-i", inventory).code == 0
        first = recorded(tmp_path, inventory)
        assert (first.code, told.posts) == (0, []), first.text
        hot_add(running)
        # Facts are recorded in the order in which they were read, to the second: each check is a later one.
        second = _later(tmp_path, inventory, "--against", before)
        assert second.code == 0, second.text
    events = {event["event"]: event for _, event in told.posts}
    assert events.keys() - {"check_failed"} == {"new_findings", "drift"}  # an attempt within the same second
    assert events["new_findings"]["words"].count("sql16") > 0
    said = re.findall(r"(\w+) is (\w+), designed (\w+); changed by ([\w.]+)", events["drift"]["words"])
    assert ("cpuHotAddEnabled", "true", "false", "VSPHERE.LOCAL") in said
    assert all(
        events[name]["run"] is None and events[name]["simulated"] for name in ("new_findings", "drift")
    )


def _later(folder: Path, inventory: Path, *more: str | Path) -> Ran:
    """A check whose facts are newer than the last recorded ones, by the clock's next second."""
    for _ in range(100):
        ran = recorded(folder, inventory, *more)
        if "already recorded" not in ran.text:
            return ran
    raise AssertionError("the clock stands still")


def test_a_check_that_cannot_be_made_is_reported(lab: LabFactory, tmp_path: Path) -> None:
    """With why, and the exit code that the pipeline gets; whether the source is a lab is not known."""
    with web_server(None) as told:
        inventory = notified(tmp_path, lab(SITE), told.address, port=1)
        ran = recorded(tmp_path, inventory)
    assert ran.code == 4, ran.text
    ((_, event),) = told.posts
    assert (event["event"], event["exit_code"], event["simulated"]) == ("check_failed", 4, None)


def test_a_notification_that_fails_is_shown_and_the_check_continues(lab: LabFactory, tmp_path: Path) -> None:
    """Its exit code and output are its own."""
    with web_server(None, status=500) as told:
        inventory = notified(tmp_path, lab(SITE), told.address, port=1)
        ran = recorded(tmp_path, inventory)
    assert ran.code == 4
    assert ran.err.count("Not sent  check_failed by webhook") == 1
    assert ran.text.count("/hook") == 0  # the address is a secret
