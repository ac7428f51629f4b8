"""Roles vm_power and guest_ready on a lab's VM."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.playbook import Played, Step, play_each, play_roles
from tests.support.site import write_inventory


def power(folder: Path, inventory: Path, state: str, *arguments: str) -> Played:
    """Play the role for this state."""
    return play_roles(folder, inventory, {"vm_power": {"vm_power_state": state}}, *arguments)


def power_now(lab: LabHandle) -> str:
    """The power state as vSphere has it."""
    return str(settings_now(lab)["power"])


@pytest.mark.parametrize(
    ("begin", "state", "end"),
    [("on", "off", "poweredOff"), pytest.param("off", "on", "poweredOn", marks=pytest.mark.long)],
)
def test_check_apply_apply_again(tmp_path: Path, lab: LabFactory, begin: str, state: str, end: str) -> None:
    """Check mode predicts and moves nothing; the state is reached; a second play changes nothing."""
    running = lab(vms=[{"name": "sql16", "power": begin}])
    inventory = write_inventory(tmp_path, running)
    before = power_now(running)

    planned = power(tmp_path, inventory, state, "--check", "--diff").only("vm_power")
    assert planned.changed
    assert planned["diff"] == {"before": {"power": begin}, "after": {"power": state}}
    assert power_now(running) == before

    applied = power(tmp_path, inventory, state).only("vm_power")
    assert applied["diff"] == planned["diff"]
    assert (applied.changed, applied["power"]) == (True, state)
    assert power_now(running) == end

    again = [Step("vm_power", {"vm_power_state": state}, check) for check in (False, True)]
    assert [task.changed for task in play_each(tmp_path, inventory, again).all("vm_power")] == [False, False]


def test_tools_that_never_come_give_the_reason_as_a_word(tmp_path: Path, lab: LabFactory) -> None:
    """The task fails with reason and exit code; check mode waits for no guest of a VM that is off."""
    vm, fault = {"name": "sql16", "power": "off"}, {"kind": "tools_never", "vm": "sql16", "boot": 1}
    inventory = write_inventory(tmp_path, lab(vms=[vm], faults=[fault]))

    steps = [Step("guest_ready", {}, True), Step("vm_power", {"vm_power_tools_timeout": 1})]
    ended = play_each(tmp_path, inventory, steps)

    assert "guest" not in ended.only("guest_ready").result
    failed = ended.only("vm_power")
    assert (failed.status, failed["reason"], failed["exit_code"]) == ("failed", "tools_timeout", 6)


def test_an_unknown_state_is_refused_by_the_role(tmp_path: Path, lab: LabFactory) -> None:
    """The argument spec names the option and the choices before any action runs."""
    ended = power(tmp_path, write_inventory(tmp_path, lab()), "sleeping")

    assert ended.code == 2
    assert ended.all("vm_power") == []


def test_a_ready_guest_shows_its_topology(tmp_path: Path, lab: LabFactory) -> None:
    """After shaping and booting, SQL Server shows the sockets and nodes of the new shape."""
    running = lab()
    roles = {"vm_topology": {"vm_topology_arm": {"topology": "2x8"}}, "vm_power": {}, "guest_ready": {}}

    ended = play_roles(tmp_path, write_inventory(tmp_path, running), roles)

    seen = ended.only("guest_ready")
    assert ended.code == 0, ended.text
    assert not seen.changed
    guest = seen["guest"]
    assert (guest["vcpus"], guest["sockets"], guest["cores_per_socket"], guest["numa_nodes"]) == (16, 2, 8, 2)
    assert seen["server"]["version"].split(".")[0] == "15"
