"""Role vm_topology on a lab's VM: check, apply, apply again, and look without the product."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import LabFactory
from tests.support.cli import vnuma_here
from tests.support.looking import change_by_hand, mark_by_hand, settings_now
from tests.support.playbook import Played, Step, play_each, play_roles
from tests.support.site import write_inventory

TWO_BY_EIGHT = {"topology": "2x8", "affinity": "physical_cores", "memory_reservation": "locked"}


def shape(folder: Path, inventory: Path, arm: Any, *arguments: str, **options: Any) -> Played:
    """Play the role with this arm."""
    return play_roles(folder, inventory, {"vm_topology": {"vm_topology_arm": arm, **options}}, *arguments)


def to(arm: Any, *, check: bool = False, **options: Any) -> Step:
    """The role with this arm as one step of a play."""
    return Step("vm_topology", {"vm_topology_arm": arm, **options}, check)


def test_check_predicts_apply_changes_and_a_second_apply_does_not(tmp_path: Path, lab: LabFactory) -> None:
    """Check mode tells exactly the changes and moves nothing; once made, they are there and stay."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    before = settings_now(running)

    checked = shape(tmp_path, inventory, TWO_BY_EIGHT, "--check", "--diff")
    predicted = checked.only("vm_topology")
    assert predicted.changed
    assert predicted["powered_off"] is True
    assert '+    "numCoresPerSocket": 8' in checked.text
    assert settings_now(running) == before

    applied = shape(tmp_path, inventory, TWO_BY_EIGHT).only("vm_topology")
    assert applied.changed
    assert {key: applied[key] for key in ("changes", "prediction", "powered_off", "diff")} == {
        key: predicted[key] for key in ("changes", "prediction", "powered_off", "diff")
    }
    after = settings_now(running)
    assert (after["vcpus"], after["cores_per_socket"], after["locked"]) == (16, 8, True)
    assert after["affinity"] == list(range(0, 32, 2))
    assert after["power"] == "poweredOff"

    twice = play_each(tmp_path, inventory, [to(TWO_BY_EIGHT), to(TWO_BY_EIGHT, check=True)])
    again, checked_again = twice.all("vm_topology")
    assert (again.changed, again["changes"], again["powered_off"]) == (False, [], False)
    assert not checked_again.changed
    assert settings_now(running) == after


def test_a_vm_in_the_shape_is_not_shut_down(tmp_path: Path, lab: LabFactory) -> None:
    """No change needs no power-off: a running VM runs on."""
    running = lab()
    arm = {"topology": "4x4"}

    result = shape(tmp_path, write_inventory(tmp_path, running), arm).only("vm_topology")

    assert (result.changed, result["powered_off"]) == (False, False)
    assert settings_now(running)["power"] == "poweredOn"


def test_on_esxi_8_check_and_apply_agree_on_the_numa_keys(tmp_path: Path, lab: LabFactory) -> None:
    """What a release needs besides cores per socket is predicted and set as well."""
    running = lab("esxi8-default")
    inventory = write_inventory(tmp_path, running)

    predicted = shape(tmp_path, inventory, {"topology": "2x8"}, "--check").only("vm_topology")
    both = play_each(tmp_path, inventory, [to({"topology": "2x8"}), to({"topology": "2x8"})])
    applied, again = both.all("vm_topology")

    assert applied["changes"] == predicted["changes"]
    keys = {name.lower(): value for name, value in settings_now(running)["keys"].items()}
    assert keys["numa.vcpu.followcorespersocket"] == "1"
    assert not again.changed


WRONG_ARMS: list[tuple[dict[str, Any], str]] = [
    ({}, "option arm is invalid: topology: field required."),
    ({"topology": "2x8", "speed": 1}, "option arm is invalid: speed: "),
    ({"topology": "2 by 8"}, "option arm is invalid: topology: "),
    ({"topology": "2x8", "memory_mb": "much"}, "option arm is invalid: memory_mb"),
]


def test_a_wrong_arm_is_one_clear_sentence(tmp_path: Path, lab: LabFactory) -> None:
    """The message names the field; nothing is changed; the exit code says that the input is wrong."""
    running = lab()
    before = settings_now(running)

    ended = play_each(tmp_path, write_inventory(tmp_path, running), [to(arm) for arm, _ in WRONG_ARMS])

    for (_, said), failed in zip(WRONG_ARMS, ended.all("vm_topology"), strict=True):
        assert (failed.status, failed["exit_code"], failed["error"]) == ("failed", 3, "InputError")
        assert said in failed["msg"]
    assert settings_now(running) == before


def test_a_shape_that_the_host_cannot_give_is_refused_before_anything_changes(
    tmp_path: Path, lab: LabFactory
) -> None:
    """More vCPUs than physical cores cannot be pinned to one core each; check mode says so too."""
    running = lab()
    before = settings_now(running)
    inventory = write_inventory(tmp_path, running)
    arm = {"topology": "8x16", "affinity": "physical_cores"}

    checked, failed = play_each(tmp_path, inventory, [to(arm, check=True), to(arm)]).all("vm_topology")

    assert (failed["error"], failed["exit_code"]) == ("ArmImpossible", 5)
    assert failed["msg"] == checked["msg"]
    assert settings_now(running) == before


def test_a_vm_under_study_is_refused(tmp_path: Path, lab: LabFactory) -> None:
    """A VM that carries a run's mark is left alone by hand, and check mode says so beforehand."""
    running = lab()
    mark_by_hand(running, '{"run": "theirs.7", "holder": "ann@host", "since": "2026-01-01T00:00:00Z"}')
    before = settings_now(running)

    steps = [to(TWO_BY_EIGHT, check=True), to(TWO_BY_EIGHT)]
    refused = play_each(tmp_path, write_inventory(tmp_path, running), steps).all("vm_topology")

    assert len(refused) == 2
    for failed in refused:
        assert (failed.status, failed["exit_code"], failed["error"]) == ("failed", 8, "VmHeld")
        assert "ann@host, run theirs.7" in failed["msg"]
    assert settings_now(running) == before


PRODUCTION = {"name": "sql16", "test_clone": False} | {
    field: f"{{{{ vnuma_{field} }}}}" for field in ("vm", "vcenter", "sql")
}


NOT_PERMITTED: list[tuple[dict[str, Any], int, str]] = [
    ({}, 5, "P07 sql16 is not marked as a test clone."),
    ({"vm_topology_ticket": "CHG0031234"}, 5, "options production: true and ticket: CHG..."),
    ({"vm_topology_production": True}, 3, "needs the change ticket"),
    ({"vm_topology_production": True, "vm_topology_ticket": "a b"}, 3, "'a b' is not a valid change ticket."),
]


def test_a_production_vm_is_refused_without_a_ticket(tmp_path: Path, lab: LabFactory) -> None:
    """By hand as in a run, and check mode says so beforehand."""
    running = lab()
    before = settings_now(running)
    cases = [(*case, check) for case in NOT_PERMITTED for check in (True, False)]
    steps = [
        to(TWO_BY_EIGHT, check=check, vm_topology_target=PRODUCTION, **permit)
        for permit, _, _, check in cases
    ]

    refused = play_each(tmp_path, write_inventory(tmp_path, running), steps).all("vm_topology")

    for (permit, code, said, check), failed in zip(cases, refused, strict=True):
        assert (failed.status, failed["exit_code"]) == ("failed", code), (permit, check)
        assert said in failed["msg"], (permit, check)
    assert settings_now(running) == before


def test_with_a_ticket_a_production_vm_is_changed_and_every_audit_line_carries_it(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Shape and power, each by its own role."""
    running = lab()
    permit = {"production": True, "ticket": "CHG0031234"}
    roles = {
        role: {f"{role}_{name}": value for name, value in {**permit, "target": PRODUCTION}.items()}
        for role in ("vm_topology", "vm_power")
    }
    roles["vm_topology"]["vm_topology_arm"] = TWO_BY_EIGHT

    ended = play_roles(tmp_path, write_inventory(tmp_path, running), roles)

    assert ended.code == 0, ended.text
    lines = [json.loads(line) for line in vnuma_here("audit", "--format", "jsonl").out.splitlines()]
    assert [line["action"] for line in lines] == ["power", "reconfigure", "power"]
    assert {line["ticket"] for line in lines} == {"CHG0031234"}


def test_a_guest_that_does_not_shut_down_gives_the_reason_as_a_word(tmp_path: Path, lab: LabFactory) -> None:
    """The VM runs on unchanged, and a playbook can decide on `reason`."""
    running = lab(faults=[{"kind": "shutdown_never", "vm": "sql16", "boot": 1, "times": 0}])
    before = settings_now(running)

    failed = shape(
        tmp_path, write_inventory(tmp_path, running), TWO_BY_EIGHT, vm_topology_shutdown_timeout=2
    ).only("vm_topology")

    assert (failed["reason"], failed["exit_code"]) == ("shutdown_timeout", 6)
    assert settings_now(running) == before


def test_a_change_by_others_is_seen_as_a_difference(tmp_path: Path, lab: LabFactory) -> None:
    """Idempotence looks at the VM and not at what was done before."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    shape(tmp_path, inventory, TWO_BY_EIGHT)
    change_by_hand(running, numCoresPerSocket=2)

    again = shape(tmp_path, inventory, TWO_BY_EIGHT).only("vm_topology")

    assert again["changes"] == [{"setting": "numCoresPerSocket", "before": 2, "after": 8}]
    assert settings_now(running)["cores_per_socket"] == 8
