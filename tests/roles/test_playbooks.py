"""The collection's playbooks by hand, without `vnuma run` over them."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import status, vnuma
from tests.support.looking import settings_now
from tests.support.playbook import Played, Result, Step, play, play_each
from tests.support.site import write_inventory, write_study
from vnuma.store.tables import iso, utc_now


def create(folder: Path, inventory: Path, **changes: Any) -> str:
    """Create a run without starting it; its name."""
    ran = vnuma("run", write_study(folder, **changes), "-i", inventory, "--create-only")
    assert ran.code == 0, ran.text
    return ran.out.strip()


def by_hand(folder: Path, inventory: Path, playbook: str, run: str, *arguments: str) -> Played:
    """Play one of the collection's playbooks on a run."""
    variables = json.dumps({"vnuma_run": run, "vnuma_max_cells": 5})
    return play(folder, inventory, f"vnuma.vnuma.{playbook}", "-e", variables, *arguments)


def rows_of_store(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, read without the product."""
    (path,) = home.glob("*.db")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        content = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    connection.close()
    return content


def test_creating_a_run_stores_it_and_changes_no_vm(tmp_path: Path, lab: LabFactory) -> None:
    """Its name is printed alone, for scripts; no VM is marked or leased."""
    running = lab()
    before = settings_now(running)

    name = create(tmp_path, write_inventory(tmp_path, running))

    assert name == "small.1"
    assert settings_now(running) == before
    now = status()
    assert ([run["state"] for run in now["runs"]], now["not_at_baseline"]) == (["planned"], [])


@pytest.mark.long
def test_check_mode_of_a_study_claims_and_stores_nothing(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """It names the next cell, and the store holds afterwards what it held before."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    run = create(tmp_path, inventory)
    before, stored = settings_now(running), rows_of_store(vnuma_home)

    ended = by_hand(tmp_path, inventory, "study", run, "--check", "--diff")

    assert ended.code == 0, ended.text
    claimed = ended.only("cell_claim")
    assert claimed["claimed"] is False
    assert claimed["why"].startswith("check mode: the next cell would be block 1, ")
    assert [task.action for task in ended.tasks if _is_ours(task)] == [
        "vnuma.vnuma.cell_claim",
        *(f"vnuma.vnuma.{step}" for step in STEPS),
        "vnuma.vnuma.vm_restore",
    ]
    assert rows_of_store(vnuma_home) == stored
    assert settings_now(running) == before


def _is_ours(task: Result) -> bool:
    return task.action.startswith("vnuma.") and task.status != "skipped"


STEPS = ("vm_topology", "vm_power", "guest_ready", "sql_benchmark")
"""The actions of a cell after its claim."""


@pytest.mark.parametrize("cells", [1, pytest.param(2, marks=pytest.mark.long)])
def test_check_mode_of_a_cell_shows_all_that_it_then_does(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path, cells: int
) -> None:
    """Mark, SQL Server's soft-NUMA, power, settings, database: each step's difference is the real run's."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    arms = [{"topology": "1x16", "name": "whole", "soft_numa": "off"}, "1x16"]
    run = create(tmp_path, inventory, arms=arms, design={"order": "fixed"})

    seen: set[tuple[str, str, Any]] = set()
    for _ in range(cells):
        before, stored = settings_now(running), rows_of_store(vnuma_home)
        checked = by_hand(tmp_path, inventory, "cell", run, "--check", "--diff")
        assert (settings_now(running), rows_of_store(vnuma_home)) == (before, stored)
        done = by_hand(tmp_path, inventory, "cell", run, "--diff")

        assert checked.code == done.code == 0, checked.text + done.text
        for action in ("cell_claim", *STEPS):
            assert difference(checked, action) == difference(done, action), action
            after = difference(done, action)["diff"]["after"]
            seen |= {(action, name, value) for name, value in after.items()}
    assert seen >= {
        ("cell_claim", "vnuma.run", run),
        ("guest_ready", "sql.softNuma", False),
        ("vm_topology", "numCoresPerSocket", 16),
        ("vm_power", "power", "poweredOn"),
        ("sql_benchmark", "sql.database", "vnuma_study"),
    }
    assert (("vm_topology", "sql.softNuma", True) in seen) is (cells == 2)


def difference(played: Played, action: str) -> dict[str, Any]:
    """What a step changed, or would change."""
    result = played.only(action).result
    return {key: result.get(key) for key in ("changed", "diff", "changes", "powered_off", "prediction")}


def test_check_mode_of_a_cell_says_what_only_the_boot_can_tell(tmp_path: Path, lab: LabFactory) -> None:
    """Of a VM that is off nobody knows whether SQL Server has the database."""
    inventory = write_inventory(tmp_path, lab(vms=[{"name": "sql16", "power": "off"}]))
    run = create(tmp_path, inventory)

    checked = by_hand(tmp_path, inventory, "cell", run, "--check", "--diff")

    assert checked.code == 0, checked.text
    assert "power" not in checked.only("vm_topology")["diff"]["after"]
    assert checked.only("sql_benchmark")["diff"] == {
        "before": {"sql.database": "not known until the VM is on"},
        "after": {"sql.database": "vnuma_study"},
    }


def test_a_study_by_hand_measures_every_cell_and_restores_the_vm(tmp_path: Path, lab: LabFactory) -> None:
    """The same play that `vnuma run` launches: cells valid, VM as it was, run finished."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    before = settings_now(running)
    run = create(tmp_path, inventory)

    ended = by_hand(tmp_path, inventory, "study", run)

    assert ended.code == 0, ended.text
    assert len(ended.all("sql_benchmark")) == 2
    assert settings_now(running) == before
    (now,) = status()["runs"]
    assert (now["state"], now["valid"], now["total"]) == ("finished", 2, 2)
    again = by_hand(tmp_path, inventory, "study", run)
    assert again.only("cell_claim")["why"] == "every cell has ended"
    assert not again.only("vm_restore").changed
    assert settings_now(running) == before


@pytest.mark.long
def test_one_cell_then_restore_then_the_rest(tmp_path: Path, lab: LabFactory) -> None:
    """A run may be worked off cell by cell, with the VM restored (and the dataset dropped) in between."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    before = settings_now(running)
    run = create(tmp_path, inventory)

    first = by_hand(tmp_path, inventory, "cell", run)
    assert first.only("sql_benchmark").changed, first.text
    marked = settings_now(running)
    assert json.loads(marked["keys"]["vnuma.run"])["run"] == run

    checked = by_hand(tmp_path, inventory, "restore", run, "--check").only("vm_restore")
    assert settings_now(running) == marked
    restored = by_hand(tmp_path, inventory, "restore", run).only("vm_restore")
    assert in_short(restored) == in_short(checked)
    assert settings_now(running) == before
    again = by_hand(tmp_path, inventory, "restore", run).only("vm_restore")
    assert not again.changed

    rest = by_hand(tmp_path, inventory, "study", run)
    assert len(rest.all("sql_benchmark")) == 1, rest.text
    assert settings_now(running) == before
    assert [(run["valid"], run["total"]) for run in status()["runs"]] == [(2, 2)]


@pytest.mark.long
@pytest.mark.parametrize("power_at_start", ["on", "off"])
def test_check_mode_of_a_restore_shows_all_that_it_then_does(
    tmp_path: Path, lab: LabFactory, power_at_start: str
) -> None:
    """Settings, power, SQL Server's soft-NUMA, the mark and the dataset; and no more than that."""
    running = lab(vms=[{"name": "sql16", "power": power_at_start}])
    inventory = write_inventory(tmp_path, running)
    arms = [{"topology": "1x16", "name": "whole", "soft_numa": "off"}, "1x16"]
    changes = {"arms": arms, "design": {"order": "fixed"}} if power_at_start == "on" else {}
    run = create(tmp_path, inventory, **changes)
    measured = by_hand(tmp_path, inventory, "cell", run)
    assert measured.code == 0, measured.text

    checked = by_hand(tmp_path, inventory, "restore", run, "--check", "--diff")
    restored = by_hand(tmp_path, inventory, "restore", run, "--diff").only("vm_restore")

    planned = checked.only("vm_restore")
    assert in_short(restored) == in_short(planned)
    assert restored["powered_off"] is True
    edits = {edit["setting"]: (edit["before"], edit["after"]) for edit in planned["changes"]}
    assert edits["vnuma.run"] == (run, None)
    assert edits["sql.database"] == ("vnuma_study", None)
    if power_at_start == "on":
        assert edits["sql.softNuma"] == (False, True)

        assert "power" not in edits
    else:
        assert edits["power"] == ("poweredOn", "poweredOff")


def in_short(restored: Result) -> dict[str, Any]:
    """What a restore did, or would do."""
    return {key: restored[key] for key in ("changed", "changes", "diff", "powered_off")}


@pytest.mark.long
def test_a_run_that_another_process_supervises_is_left_to_it(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """A play by hand neither takes a VM from a living supervisor nor restores it."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    run = create(tmp_path, inventory)
    (path,) = vnuma_home.glob("*.db")
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE run SET supervisor_pid = ?, supervisor_host = ?, heartbeat_at = ?",
            (os.getpid(), os.uname().nodename, iso(utc_now())),
        )
    connection.close()
    before = settings_now(running)

    for playbook, action in (("cell", "cell_claim"), ("restore", "vm_restore")):
        failed = by_hand(tmp_path, inventory, playbook, run).only(action)
        assert (failed["error"], failed["exit_code"]) == ("VmHeld", 8)
    assert settings_now(running) == before


def test_something_that_is_no_attempt_is_refused(tmp_path: Path, lab: LabFactory) -> None:
    """The message says where an attempt comes from; check mode says so too."""
    variables = {"vm_power_run": "small.1", "vm_power_attempt": {"number": 1}}
    inventory = write_inventory(tmp_path, lab())

    steps = [Step("vm_power", variables, check) for check in (True, False)]
    refused = play_each(tmp_path, inventory, steps).all("vm_power")

    assert [(failed["error"], failed["exit_code"]) for failed in refused] == [("InputError", 3)] * 2


@pytest.mark.long
def test_a_dataset_by_hand_comes_and_goes(tmp_path: Path, lab: LabFactory) -> None:
    """playbooks/dataset.yml prepares it, and drops it on request."""
    inventory = write_inventory(tmp_path, lab())
    small = json.dumps(
        {"sql_dataset_transaction_history_rows": 30, "sql_dataset_sales_order_detail_rows": 30}
    )
    arguments = (tmp_path, inventory, "vnuma.vnuma.dataset", "-e", small)

    assert play(*arguments).only("sql_dataset").changed
    assert not play(*arguments).only("sql_dataset").changed
    assert play(*arguments, "-e", "vnuma_dataset_state=absent").only("sql_dataset").changed
