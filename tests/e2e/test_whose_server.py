"""Whose SQL Server: nothing is written to an instance that is not proven to run inside the VM."""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory, write_study
from tests.vsphere.support import vcenter_of
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power, is_evidence
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.actions import by_hand
from vnuma.engine.audit.log import journal_of
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.cell.dataset import DATABASE, prepare_cell
from vnuma.engine.instance.sql_settings import SOFT_NUMA, wait_for_server
from vnuma.engine.lease.attempt import finish
from vnuma.errors import PreflightBlocked, WrongServer
from vnuma.sqlserver.client.connect import connect as sql_connection
from vnuma.sqlserver.client.query import run, value
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.database.dataset_sql import marker_id
from vnuma.sqlserver.database.ownership import ForeignDatabase
from vnuma.store.rows import Outcome
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm, read_vm

PRODUCTION, CLONE = "/DC0/vm/Prod/sql16", "/DC0/vm/Clones/sql16"
STUDY = {
    "reference": "1x16",
    "arms": [{"topology": "1x16", "name": "whole", "soft_numa": "off"}, "1x16"],
    "design": {"blocks": 1, "order": "fixed", "warmups": 0, "iterations": 1},
}
"""Its first arm needs another setting of the whole instance than the one it has."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems have one loopback address, which all guests share"
)


def estate(
    lab: LabFactory, clone: dict[str, Any] | None = None, production: dict[str, Any] | None = None
) -> LabHandle:
    """Production, and a clone of it that was not renamed; what is found around each."""
    return lab(
        vms=[
            {"name": "sql16", "folder": "Prod", "memory_gb": 16, "around": production or {}},
            {"name": "sql16", "folder": "Clones", "memory_gb": 16, "around": clone or {}},
        ]
    )


def clone_with_sql_of(folder: Path, running: LabHandle, owner: str, **sql: Any) -> Path:
    """An inventory of the clone, as `sql16`, whose vnuma_sql leads to the SQL Server of `owner`."""
    path = write_inventory(folder, running, [CLONE])
    document = json.loads(path.read_text(encoding="utf-8"))
    hosts = document["all"]["children"]["vnuma_vms"]["hosts"]
    (variables,) = hosts.values()
    server = running.vms[owner]
    variables["vnuma_sql"] |= {"host": server.host, "port": server.port, "node_ports": [], **sql}
    document["all"]["children"]["vnuma_vms"]["hosts"] = {"sql16": variables}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def clone_now(running: LabHandle) -> tuple[Power, dict[str, Any]]:
    """The clone's power state and settings."""
    with connect(vcenter_of(running)) as session:
        vm = read_vm(session, find_vm(session, CLONE))
    return vm.power, {name: value for name, value in vm.settings.items() if not is_evidence(name)}


def steps_of(tmp_path: Path, running: LabHandle, owner: str, **sql: Any) -> Steps:
    """A run of the soft-NUMA study on the clone, driven step by step."""
    inventory = clone_with_sql_of(tmp_path, running, owner, **sql)
    return Steps.of(tmp_path, inventory, write_study(tmp_path, **STUDY))


def test_a_server_at_another_address_blocks_the_study(tmp_path: Path, lab: LabFactory) -> None:
    """Guest names agree, addresses do not: plan and run refuse, doctor says it, nothing is changed."""
    running = estate(lab)
    inventory = clone_with_sql_of(tmp_path, running, PRODUCTION)
    study = write_study(tmp_path, **STUDY)

    planned = vnuma_here("plan", study, "-i", inventory, "--checks")
    ran = vnuma_here("run", study, "-i", inventory)
    doctor = vnuma_here("doctor", "-i", inventory)

    assert (planned.code, ran.code) == (5, 5), planned.text + ran.text
    assert all("P31" in said for said in (planned.text, ran.err, doctor.out))
    assert running.audit(PRODUCTION)["logins"] > 0
    assert running.audit(PRODUCTION)["changes"] == []


def test_a_server_that_started_before_the_vms_power_on_blocks_the_study(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The clone has production's address on a network of its own: the uptime tells."""
    running = estate(lab, {"guest_addresses": ["127.0.0.1"]}, {"up_minutes": 90})

    inventory = clone_with_sql_of(tmp_path, running, PRODUCTION)
    ran = vnuma_here("run", write_study(tmp_path, **STUDY), "-i", inventory)

    assert (ran.code, set(re.findall(r"\bP\d\d\b", ran.err))) == (5, {"P32"}), ran.text
    assert running.audit(PRODUCTION)["changes"] == []


def test_the_first_arms_setting_is_written_after_the_first_power_cycle(
    tmp_path: Path, lab: LabFactory
) -> None:
    """It costs one power-cycle more, no attempt, and no write before the instance was proven."""
    running = estate(lab)
    steps = steps_of(tmp_path, running, CLONE)
    context = steps.take()

    attempt = steps.shape(context)
    boot_cell(context, attempt)
    assert running.audit(CLONE)["changes"] == []
    seen = ready_cell(context, attempt)
    finish(context, attempt, Outcome.VALID, None, None)

    assert seen
    assert seen["guest"]["sql_cpu_nodes"] == 1
    assert running.audit(CLONE)["changes"] == ["AlterServer (sa, master)"]
    steps.shape(context)  # that boot is proven: the next arm's setting needs no boot of its own
    assert len(running.audit(CLONE)["changes"]) == 2
    assert sum(event["event"] == "power_off" for event in running.events) == 3
    steps.restore()
    assert running.audit(PRODUCTION)["changes"] == []


def test_a_server_that_a_power_cycle_proves_wrong_is_never_written_to(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Name, address and uptime agreed. With a corrected inventory the settings are read again."""
    small = {"name": "sql16", "memory_gb": 16}
    running = lab(
        vms=[
            small | {"folder": "Prod", "sql": {"soft_numa": False}},
            small | {"folder": "Clones", "around": {"guest_addresses": ["127.0.0.1"]}},
        ]
    )
    before = clone_now(running)
    steps = steps_of(tmp_path, running, PRODUCTION)
    context = steps.take()
    attempt = steps.shape(context)
    with pytest.raises(WrongServer):
        boot_cell(context, attempt)
    assert SOFT_NUMA.baseline_of(steps.vm) is False
    assert running.audit(PRODUCTION)["requests"] > 0
    assert running.audit(PRODUCTION)["changes"] == []
    assert {event["path"] for event in running.events if event["event"] == "power_off"} == {CLONE}

    corrected = Inventory(clone_with_sql_of(tmp_path, running, CLONE)).targets(["sql16"])
    steps = replace(steps, target=corrected["sql16"], targets=corrected)
    steps.restore()
    assert clone_now(running) == before
    wait_for_server(sql_server(steps.target), 60)
    steps.take()

    assert SOFT_NUMA.baseline_of(steps.vm) is True


def test_clocks_that_are_minutes_off_neither_block_nor_delay(tmp_path: Path, lab: LabFactory) -> None:
    """The host's is behind, the guest's ahead: doctor says so, preflight and a boot go by differences."""
    running = lab(
        host={"name": "esx01", "clock_minutes": 8},
        vms=[{"name": "sql16", "around": {"clock_minutes": -11}}],
    )
    steps = Steps.prepared(tmp_path / "a", running, power={"sql_timeout_s": 20})
    doctor = vnuma_here("doctor", "-i", tmp_path / "a" / "hosts.yml")
    context = steps.take()

    attempt = steps.shape(context)
    boot_cell(context, attempt)
    ready_cell(context, attempt)

    host, guest = map(int, re.findall(r"clocks .* host (\S+) s, guest (\S+) s", doctor.out)[0])
    assert (abs(host - 8 * 60) <= 2, abs(guest + 11 * 60) <= 2) == (True, True)
    steps.restore()


def test_a_server_whose_address_the_guest_does_not_show_needs_a_stated_identity(
    tmp_path: Path, lab: LabFactory
) -> None:
    """As in a container: blocked without a choice, and with a wrong one."""
    running = estate(lab, {"guest_addresses": ["192.0.2.7"]})
    study = write_study(tmp_path)
    codes: dict[Any, int] = {"guest_address": 5, "power_cycle": 0, "127.0.0.2": 0, "192.0.2.9": 5, "sql16": 3}

    for stated, code in codes.items():
        identity = stated if "_" in stated else {"address": stated}
        inventory = clone_with_sql_of(tmp_path, running, CLONE, identity=identity)
        planned = vnuma_here("plan", study, "-i", inventory)
        assert planned.code == code, (stated, planned.text)


def test_the_power_cycle_proves_a_server_whose_address_nobody_reports(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Without an address from Tools nothing passes before it, and nothing blocks after it."""
    running = estate(lab, {"guest_addresses": []})
    steps = steps_of(tmp_path, running, CLONE)
    context = steps.take()

    attempt = steps.shape(context)
    boot_cell(context, attempt)
    ready_cell(context, attempt)

    assert running.audit(CLONE)["changes"] == ["AlterServer (sa, master)"]
    assert running.events[-1]["path"] == CLONE


def test_no_step_writes_to_a_server_before_its_boot_was_proven(tmp_path: Path, lab: LabFactory) -> None:
    """A play that leaves guest_ready out makes no dataset."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running)
    context = steps.take()
    attempt = steps.shape(context)
    boot_cell(context, attempt)
    running.wait_for("sql_listening", count=2)

    with pytest.raises(WrongServer):
        prepare_cell(context, attempt)

    assert running.audit("sql16")["changes"] == []


@pytest.mark.parametrize("holds", ["nothing", "a table"])
def test_a_database_whose_creation_was_cut_off_is_made_anew(
    tmp_path: Path, lab: LabFactory, holds: str
) -> None:
    """By the log the run began it; without our marker it is made anew while it is empty, else refused."""
    steps = Steps.prepared(tmp_path / "a", lab())
    context = steps.take()
    attempt = steps.shape(context)
    boot_cell(context, attempt)
    ready_cell(context, attempt)
    # A process that was killed between its two statements: no line after the change.
    journal_of(context).change("dataset", [Edit(DATABASE, None, "vnuma_study")]).__enter__()
    with sql_connection(context.sql()) as connection:
        run(connection, "CREATE DATABASE vnuma_study")
        if holds == "a table":
            run(connection, "USE vnuma_study")
            run(connection, "CREATE TABLE dbo.theirs (id int NOT NULL)")

    refused = nullcontext() if holds == "nothing" else pytest.raises(ForeignDatabase)
    with refused:
        prepare_cell(context, attempt)
    with sql_connection(context.sql()) as connection:
        ours = value(connection, marker_id("vnuma_study")) is not None

    assert ours is (holds == "nothing")


def test_a_dataset_by_hand_is_made_on_the_vms_own_server_only(tmp_path: Path, lab: LabFactory) -> None:
    """Outside a run there is no power-cycle, so all facts must match."""
    running = estate(lab)
    rows = {"transaction_history_rows": 20, "sales_order_detail_rows": 20}
    made = {"state": "present", "database": DatasetSpec.database, "source": DatasetSpec.source, **rows}
    dropped = made | {"state": "absent"}
    right, wrong = (
        Inventory(clone_with_sql_of(tmp_path, running, owner)).targets(["sql16"])["sql16"]
        for owner in (CLONE, PRODUCTION)
    )

    for asked in (made, dropped):
        with pytest.raises(PreflightBlocked):
            by_hand.dataset(wrong, asked)

    assert running.audit(PRODUCTION)["changes"] == []
    assert by_hand.dataset(right, made)["changed"]
    assert by_hand.dataset(right, dropped)["changed"]
