"""What may be touched, when, and the lines that tell of it afterwards."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.store.build import new_run
from tests.support.cli import in_json, status, vnuma_here
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study
from tests.support.stores import new_store
from vnuma.domain.study.study import AllowedHours
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.places import audit_file
from vnuma.engine.audit.log import Journal, audit_lines, noted_here, read_audit_file
from vnuma.engine.cell.boot import boot_cell
from vnuma.engine.cell.measure_cell import CellSystem
from vnuma.engine.instance.sql_settings import wait_for_server
from vnuma.errors import Interrupted, NotAtBaseline, PreflightBlocked, StoreError
from vnuma.store import attempts, cells, leases
from vnuma.store.audit import changes
from vnuma.store.rows import Outcome


def test_every_change_to_a_vm_is_a_line_in_store_and_file(lab: LabFactory, tmp_path: Path) -> None:
    """Baseline, mark, shutdown, shape and restoring: old and new values, who, run; both places agree."""
    steps = Steps.shaped(tmp_path / "home", lab())
    steps.restore()

    lines = audit_lines(steps.store, steps.run.name)
    assert [line.action for line in lines] == [
        *("baseline", "deadlines", "mark", "power", "reconfigure"),
        *("restore", "power", "mark"),
    ]
    assert {line.vm for line in lines} == {"sql16"}
    assert all("@" in line.who for line in lines)
    shaped = {edit["setting"]: (edit["before"], edit["after"]) for edit in lines[4].change}
    back = {edit["setting"]: (edit["before"], edit["after"]) for edit in lines[5].change}
    assert shaped["numCoresPerSocket"] == (4, 16)
    assert back["numCoresPerSocket"] == (16, 4)
    assert {line.outcome for line in lines} == {"noted", "made"}
    assert changes(read_audit_file(audit_file(steps.store.place))) == lines


SOFT_NUMA_OFF: dict[str, Any] = {
    "arms": [{"topology": "1x16", "name": "whole", "soft_numa": "off"}, "1x16"],
    "design": {"blocks": 1, "order": "fixed", "warmups": 0, "iterations": 1},
}
"""Its baseline has a setting of SQL Server, which is read again until the run's first write in the guest."""


def test_a_resumed_run_does_not_take_over_an_altered_baseline(lab: LabFactory, tmp_path: Path) -> None:
    """SQL Server's part is read again then, and would have the altered rest recorded as correct."""
    simulated = lab()
    steps = Steps.prepared(tmp_path / "home", simulated, **SOFT_NUMA_OFF)
    context = steps.take()
    boot_cell(context, steps.shape(context))
    wait_for_server(sql_server(steps.target), 60)
    shaped = settings_now(simulated)
    taken: Any = steps.vm.baseline
    altered = {
        **taken,
        "settings": {**taken["settings"], "numCoresPerSocket": 2},
        "guest": {"sql.softNuma": 0},
    }
    with steps.store.write() as connection:
        cells.correct(connection, steps.vm.id, context.token, altered)

    for touch in (steps.take, steps.restore):
        with pytest.raises(NotAtBaseline):
            touch()
    assert settings_now(simulated) == shaped

    with steps.store.write() as connection:
        lease = leases.get_lease(connection, steps.vm.vm_key)
        assert lease
        cells.correct(connection, steps.vm.id, lease.token, taken)
    assert steps.restore().changes


def test_a_correction_that_did_not_reach_the_store_leaves_its_baseline_valid(
    lab: LabFactory, tmp_path: Path
) -> None:
    """Another machine, or an earlier version, took the VM over; this one ended while correcting it."""
    simulated = lab()
    before = settings_now(simulated)
    steps = Steps.prepared(tmp_path / "home", simulated, **SOFT_NUMA_OFF)
    context = steps.take()
    taken: Any = steps.vm.baseline
    audit_file(steps.store.place).unlink()
    with steps.store.write() as connection:
        cells.correct(connection, steps.vm.id, context.token, {**taken, "guest_of": "elsewhere"})
        refused = "NEW.scope = 'baseline_corrected' BEGIN SELECT RAISE(ABORT, 'refused'); END"
        connection.execute(text(f"CREATE TRIGGER refused BEFORE INSERT ON fact WHEN {refused}"))
    with pytest.raises(StoreError):
        steps.take()

    steps.restore()

    assert settings_now(simulated) == before


def test_a_long_log_takes_no_memory_from_a_restore(tmp_path: Path) -> None:
    """Every VM's restore looks through it."""
    store = new_store(tmp_path / "vnuma.db")
    run = new_run(store)
    journal = Journal(store, "vc/1", "sql16", run)
    journal.note("baseline", "a")
    file = audit_file(store.place)
    file.write_bytes(file.read_bytes() * 20_000)
    tracemalloc.start()

    found = sum(1 for _ in noted_here(store, run, "vc/1", "baseline"))

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == 20_000
    assert peak < file.stat().st_size / 4


def test_production_needs_a_flag_and_a_ticket_which_every_line_then_has(
    lab: LabFactory, tmp_path: Path
) -> None:
    """Unmarked: refused; without a ticket: refused; with both: stored and quoted."""
    inventory = write_inventory(tmp_path, lab())
    text = inventory.read_text(encoding="utf-8")
    inventory.write_text(text.replace('"vnuma_test_clone": true', '"vnuma_test_clone": false'))
    study = write_study(tmp_path)

    assert vnuma_here("run", study, "-i", inventory).code == 5
    assert vnuma_here("run", study, "-i", inventory, "--production").code == 2

    created = vnuma_here(
        "run", study, "-i", inventory, "--production", "--ticket", "CHG0031", "--create-only"
    )
    assert created.code == 0, created.text
    plan = vnuma_here("plan", study, "-i", inventory, "--production", "--ticket", "CHG0031", "--checks")
    assert plan.code == 0, plan.text
    results = in_json("results", created.out.strip())
    assert results["ticket"] == "CHG0031"


def test_a_cell_that_overruns_the_allowed_hours_is_stopped_between_steps_and_iterations(
    lab: LabFactory, tmp_path: Path
) -> None:
    """By the step itself, whoever plays it; the attempt is kept as interrupted, and the VM is restored."""
    running = lab()
    steps = Steps.prepared(tmp_path / "home", running)
    before = settings_now(running)
    context = steps.take()
    attempt = steps.shape(context)
    always = AllowedHours(time_zone="UTC", windows=("Mon-Sun 00:00-24:00",), restore_s=1e7)
    over = replace(context, study=context.study.model_copy(update={"allowed_hours": always}))

    with pytest.raises(Interrupted):
        CellSystem(over, attempt).stop_if_asked()
    with pytest.raises(Interrupted):
        boot_cell(over, attempt)

    with steps.store.read() as connection:
        assert attempts.get_attempt(connection, attempt.id).outcome is Outcome.INTERRUPTED
    assert settings_now(running)["power"] == "poweredOff"  # the boot was not begun
    steps.restore()
    assert settings_now(running) == before


def test_a_study_does_not_start_outside_its_hours(lab: LabFactory, tmp_path: Path) -> None:
    """Refused before a run is stored or a VM touched. A faulty notification is reported before that."""
    day = f"{datetime.now(UTC):%a}"
    other = "Mon" if day not in ("Sun", "Mon") else "Thu"
    hours = {"time_zone": "UTC", "windows": [f"{other} 00:00-01:00"]}
    study = write_study(tmp_path, allowed_hours=hours)
    inventory = write_inventory(tmp_path, lab())

    assert vnuma_here("run", study, "-i", inventory).code == PreflightBlocked.exit_code

    document = json.loads(inventory.read_text(encoding="utf-8"))
    document["all"]["vars"] = {"vnuma_notify": [{"pigeon": "coo"}]}
    inventory.write_text(json.dumps(document), encoding="utf-8")
    assert vnuma_here("run", study, "-i", inventory).code == 3
    assert status()["runs"] == []
