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
    assert predicted["diff"]["after"]["numCoresPerSocket"] == 8
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


PRODUCTION = {"name": "sql16", "test_clone": False} | {
    field: f"{{{{ vnuma_{field} }}}}" for field in ("vm", "vcenter", "sql")
}

REFUSED: list[tuple[Any, dict[str, Any], str, int]] = [
    ({}, {}, "InputError", 3),
    ({"topology": "2x8", "speed": 1}, {}, "InputError", 3),
    ({"topology": "8x16", "affinity": "physical_cores"}, {}, "ArmImpossible", 5),
    (TWO_BY_EIGHT, {"vm_topology_target": PRODUCTION}, "PreflightBlocked", 5),
    (TWO_BY_EIGHT, {"vm_topology_target": PRODUCTION, "vm_topology_production": True}, "InputError", 3),
]
"""An arm that is none; more vCPUs than cores to pin them to; a production VM, and one without a ticket."""


def test_what_may_not_be_done_is_refused_before_anything_changes(tmp_path: Path, lab: LabFactory) -> None:
    """By hand as in a run; check mode says so too, by the same error."""
    running = lab()
    before = settings_now(running)
    cases = [case for case in REFUSED for _ in (True, False)]
    steps = [to(arm, check=not number % 2, **more) for number, (arm, more, _, _) in enumerate(cases)]

    refused = play_each(tmp_path, write_inventory(tmp_path, running), steps).all("vm_topology")

    assert [(failed.status, failed["error"], failed["exit_code"]) for failed in refused] == [
        ("failed", error, code) for _, _, error, code in cases
    ]
    assert [failed["msg"] for failed in refused[::2]] == [failed["msg"] for failed in refused[1::2]]
    assert settings_now(running) == before


def test_a_vm_under_study_is_refused(tmp_path: Path, lab: LabFactory) -> None:
    """A VM that carries a run's mark keeps its shape and its power; check mode says so beforehand."""
    running = lab()
    mark_by_hand(running, '{"run": "theirs.7", "holder": "ann@host", "since": "2026-01-01T00:00:00Z"}')
    before = settings_now(running)

    steps = [to(TWO_BY_EIGHT, check=True), to(TWO_BY_EIGHT)]
    steps += [Step("vm_power", {"vm_power_state": "off"}, check) for check in (True, False)]
    refused = play_each(tmp_path, write_inventory(tmp_path, running), steps)

    failures = [*refused.all("vm_topology"), *refused.all("vm_power")]
    assert len(failures) == 4
    for failed in failures:
        assert (failed.status, failed["exit_code"], failed["error"]) == ("failed", 8, "VmHeld")
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
    """Idempotence looks at the VM and not at what was done before. No change needs no power-off."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    same, _ = play_each(tmp_path, inventory, [to({"topology": "4x4"}), to(TWO_BY_EIGHT)]).all("vm_topology")
    assert (same.changed, same["powered_off"]) == (False, False)
    change_by_hand(running, numCoresPerSocket=2)

    again = shape(tmp_path, inventory, TWO_BY_EIGHT).only("vm_topology")

    assert again["changes"] == [{"setting": "numCoresPerSocket", "before": 2, "after": 8}]
    assert settings_now(running)["cores_per_socket"] == 8
