"""A run that another person has to approve: it waits, starts once approved, and only as it was approved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Update, update

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import vnuma, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study
from vnuma.engine.access.places import audit_file
from vnuma.engine.run.approval import (
    approval_of,
    approve,
    ask_for_approval,
    is_required,
    refuse_unapproved,
)
from vnuma.errors import InputError, PreflightBlocked, StoreError
from vnuma.store import runs, tables
from vnuma.store.rows import RunState


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
    """Nothing is changed before; its creator cannot approve it; status shows its state."""
    running = lab()
    inventory = requiring(write_inventory(tmp_path, running))
    study, before = write_study(tmp_path), settings_now(running)

    refused = vnuma_here("run", study, "-i", inventory)
    assert (refused.code, settings_now(running)) == (5, before)
    assert "vnuma approve small.1" in refused.err
    assert json.loads(vnuma_here("plan", study, "-i", inventory, "--format", "json").out)["needs_approval"]
    assert "waits for approval" in vnuma_here("status").out
    assert "not begun" in vnuma_here("status", "small.1").out

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


ALTERED: dict[str, Update] = {
    "another study": update(tables.study).values(yaml=tables.study.c.yaml + "\n# more\n"),
    "another seed": update(tables.run).values(seed=99),
    "another ticket": update(tables.run).values(ticket="CHG9"),
    "another inventory": update(tables.run).values(inventory="/elsewhere"),
    "another VM": update(tables.vm).values(vm_key="other"),
    "another declaration": update(tables.fact).where(tables.fact.c.scope == "declared").values(key="plan2"),
}


@pytest.mark.parametrize("what", list(ALTERED))
def test_an_approval_does_not_hold_for_a_run_that_was_altered(
    tmp_path: Path, shared_lab: LabHandle, what: str
) -> None:
    """Whatever is written into the store afterwards."""
    steps = waiting(tmp_path, shared_lab)
    approve(steps.run.name, by="grace@controller", url=steps.url)
    refuse_unapproved(steps.store, steps.run)
    with steps.store.write() as connection:
        connection.execute(ALTERED[what])
        altered = runs.get_run(connection, steps.run.name)

    with pytest.raises(PreflightBlocked, match="altered"):
        refuse_unapproved(steps.store, altered)


def test_an_inventory_that_asks_for_it_later_is_heard(tmp_path: Path, lab: LabFactory) -> None:
    """A run that was created before waits all the same when it is resumed; contract refuses the VM."""
    running = lab()
    inventory, study = write_inventory(tmp_path, running), write_study(tmp_path)
    before = settings_now(running)
    assert vnuma_here("run", study, "-i", inventory, "--create-only").code == 0
    requiring(inventory)

    refused = vnuma_here("run", "--resume", "small.1")
    assert (refused.code, "vnuma approve small.1" in refused.err) == (5, True)
    asked = vnuma_here("contract", "--vcenter", "sql16", "-i", inventory, "--yes")
    assert (asked.code, "another person's approval" in asked.err) == (5, True)
    assert settings_now(running) == before


@pytest.mark.parametrize(
    "spelt", ["{}@elsewhere", "ACME\\{}", " {} ", "CN={},O=Acme", "{upper}", "acme\\{upper}@corp.example"]
)
def test_the_same_account_spelt_otherwise_is_no_other_person(
    tmp_path: Path, shared_lab: LabHandle, spelt: str
) -> None:
    """On another machine, with a domain, in capitals, as a certificate's subject."""
    steps = waiting(tmp_path, shared_lab)
    with steps.store.read() as connection:
        known = approval_of(connection, steps.run)
    assert known is not None
    user = known.asked_by.partition("@")[0]
    with pytest.raises(InputError, match="cannot approve"):
        approve(steps.run.name, by=spelt.format(user, upper=user.upper()), url=steps.url)


def test_a_run_that_needs_no_approval_or_has_ended_gets_none(tmp_path: Path, shared_lab: LabHandle) -> None:
    """An approval of what nobody asked for would mean nothing."""
    free = Steps.prepared(tmp_path / "free", shared_lab)
    with pytest.raises(InputError, match="needs no approval"):
        approve(free.run.name, by="grace@controller", url=free.url)

    ended = waiting(tmp_path / "ended", shared_lab)
    with ended.store.write() as connection:
        runs.set_run_state(connection, ended.run.id, RunState.FINISHED)
    with pytest.raises(InputError, match="has ended"):
        approve(ended.run.name, by="grace@controller", url=ended.url)


def test_without_its_line_in_the_audit_log_nothing_is_approved(tmp_path: Path, shared_lab: LabHandle) -> None:
    """A log that cannot be written: the run waits on."""
    steps = waiting(tmp_path, shared_lab)
    log = audit_file(steps.store.place)
    log.unlink(missing_ok=True)
    log.mkdir(parents=True)

    with pytest.raises(StoreError):
        approve(steps.run.name, by="grace@controller", url=steps.url)
    with pytest.raises(PreflightBlocked):
        refuse_unapproved(steps.store, steps.run)


@pytest.mark.parametrize("value", ["yes", True, 1])
def test_another_value_is_refused(tmp_path: Path, lab: LabFactory, value: object) -> None:
    """A misspelt word must not mean that nobody has to approve."""
    inventory = requiring(write_inventory(tmp_path, lab()), value)

    with pytest.raises(InputError, match="required, or none"):
        is_required(inventory, ["sql16"])
