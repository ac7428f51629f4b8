"""A run that another person has to approve: it waits, starts once approved, and only as it was approved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import vnuma, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study
from vnuma.engine.run.approval import approval_of, approve, ask_for_approval, is_required
from vnuma.errors import InputError, PreflightBlocked
from vnuma.store import tables


def requiring(inventory: Path, value: object = "required") -> Path:
    """The inventory, with an approval asked for."""
    document = json.loads(inventory.read_text(encoding="utf-8"))
    document["all"].setdefault("vars", {})["vnuma_approval"] = value
    inventory.write_text(json.dumps(document), encoding="utf-8")
    return inventory


def waiting(home: Path, running: LabHandle) -> Steps:
    """A stored run that waits for its approval."""
    steps = Steps.prepared(home, running)
    with steps.store.write() as connection:
        ask_for_approval(connection, steps.run)
    return steps


def test_a_run_waits_for_another_person_and_starts_then(tmp_path: Path, lab: LabFactory) -> None:
    """Nothing is changed before; its creator cannot approve it; status says where it stands."""
    running = lab()
    inventory = requiring(write_inventory(tmp_path, running))
    study, before = write_study(tmp_path), settings_now(running)

    refused = vnuma_here("run", study, "-i", inventory)
    assert (refused.code, settings_now(running)) == (5, before)
    assert "vnuma approve small.1" in refused.err
    assert json.loads(vnuma_here("plan", study, "-i", inventory, "--format", "json").out)["needs_approval"]
    assert "waits for approval" in vnuma_here("status").out

    own = vnuma_here("approve", "small.1")
    assert (own.code, "cannot approve it" in own.err) == (3, True)
    assert vnuma_here("run", "--resume", "small.1").code == 5

    said = approve("small.1", ticket="CHG0031234", by="grace@controller")
    assert "vnuma run --resume small.1" in said
    assert vnuma_here("approve", "small.1").out.startswith("small.1 is approved by grace@controller")
    assert vnuma("run", "--resume", "small.1").code == 0
    assert settings_now(running) == before
    assert "approved by grace@controller, CHG0031234" in vnuma_here("status", "small.1").out
    assert "grace@controller, CHG0031234" in vnuma_here("audit", "small.1").out


def test_a_play_without_vnuma_run_takes_no_vm_over_before_the_approval(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The store knows that the run needs one, whatever an inventory says later."""
    running = lab()
    before = settings_now(running)
    steps = waiting(tmp_path, running)

    with pytest.raises(PreflightBlocked, match="waits for approval"):
        steps.take()
    assert settings_now(running) == before

    approve(steps.run.name, by="grace@controller", url=steps.url)
    steps.take()
    steps.restore()


def test_an_approval_does_not_hold_for_a_run_that_was_altered(tmp_path: Path, lab: LabFactory) -> None:
    """Such as another study under the same name, written into the store."""
    steps = waiting(tmp_path, lab())
    approve(steps.run.name, by="grace@controller", url=steps.url)
    with steps.store.write() as connection:
        connection.execute(update(tables.study).values(yaml=tables.study.c.yaml + "\n# more\n"))

    with pytest.raises(PreflightBlocked, match="altered"):
        steps.take()


def test_the_same_account_on_another_machine_is_no_other_person(tmp_path: Path, lab: LabFactory) -> None:
    """Nor does an approval exist where none was asked for."""
    steps = waiting(tmp_path, lab())
    with steps.store.read() as connection:
        known = approval_of(connection, steps.run)
    assert known is not None
    with pytest.raises(InputError, match="cannot approve"):
        approve(steps.run.name, by=f"{known.asked_by.partition('@')[0]}@elsewhere", url=steps.url)

    other = Steps.prepared(tmp_path, lab())
    with pytest.raises(InputError, match="needs no approval"):
        approve(other.run.name, by="grace@controller", url=other.url)


@pytest.mark.parametrize("value", ["yes", True, 1])
def test_another_value_is_refused(tmp_path: Path, lab: LabFactory, value: object) -> None:
    """A misspelt word must not mean that nobody has to approve."""
    inventory = requiring(write_inventory(tmp_path, lab()), value)

    with pytest.raises(InputError, match="required, or none"):
        is_required(inventory, ["sql16"])
