"""What vnuma believes of SQL Server: the lab plays it, and any server can be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sqlserver.support import LabFactory, listening, server_of
from tests.support import tds_server as tds
from tests.support.cli import vnuma
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from vnuma.contract.sql import DATABASE, ask_sql
from vnuma.contract.suite import Verdict, beliefs
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.driver import discover
from vnuma.sqlserver.client.query import run, value
from vnuma.sqlserver.database.ownership import ForeignDatabase


def test_our_database_is_gone_afterwards(any_server: SqlServer) -> None:
    """Every belief holds on the lab, asked in a database of our own."""
    judged = ask_sql(any_server)

    assert [one for one in judged.beliefs if one.verdict is not Verdict.HELD] == []
    assert judged.of["own_database"]
    with connect(any_server) as connection:
        assert value(connection, "SELECT COUNT(*) AS n FROM sys.databases WHERE name = ?", DATABASE) == 0


def test_a_foreign_database_of_that_name_is_not_changed(lab: LabFactory) -> None:
    """It is not ours to ask in, nor to drop."""
    running = lab()
    with connect(listening(running)) as connection:
        run(connection, f"CREATE DATABASE {DATABASE}")

        with pytest.raises(ForeignDatabase) as refused:
            ask_sql(server_of(running))
        assert "dataset.database" not in str(refused.value)

        assert value(connection, "SELECT COUNT(*) AS n FROM sys.databases WHERE name = ?", DATABASE) == 1


ANSWERS: dict[str, Callable[[str], bytes]] = {
    "nothing": lambda _: tds.done(),
    "errors": lambda _: tds.message(102, "Incorrect syntax near 'sys'.", 15) + tds.done(failed=True),
    "texts": lambda _: tds.texts("x"),
    "nulls": lambda _: tds.texts(None),
    "no rows": lambda _: tds.texts(),
}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "errors" else pytest.mark.long) for one in ANSWERS]
)
def test_a_server_that_lacks_everything_gets_an_answer_for_each_belief(name: str) -> None:
    """None is left out, most are not held, and nothing is a crash."""
    fake = tds.TdsServer()
    fake.answer = ANSWERS[name]
    try:
        judged = ask_sql(SqlServer("127.0.0.1", fake.port, "sa", "x", discover(), "no"))
    finally:
        fake.close()

    assert [one.id for one in judged.beliefs] == [one.id for one in beliefs("sql")]
    assert judged.count(Verdict.HELD) < len(beliefs("sql")) / 4
    assert not judged.of["own_database"]


def test_an_older_version_is_not_asked_what_came_later(lab: LabFactory) -> None:
    """SQL Server 2016 has no sys.dm_os_host_info, which came with 2017; a missing column differs."""
    without = {"dm_os_nodes": ["cpu_affinity_mask"]}
    running = lab(vms=[{"name": "sql16", "sql": {"version": "13.0.6300.2"}}], without_columns=without)
    running.wait_for("sql_listening")

    found = {one.id: one for one in ask_sql(server_of(running)).beliefs}

    assert found["view.dm_os_host_info"].verdict is Verdict.NOT_EVALUABLE
    assert found["view.dm_os_sys_info.soft_numa"].verdict is Verdict.HELD
    seen = {one.id: one.seen for one in found.values() if one.verdict is Verdict.DIFFERS}
    assert seen == {"view.dm_os_nodes": "without cpu_affinity_mask"}


def test_the_command_writes_a_file_without_names(tmp_path: Path, shared_lab: LabHandle) -> None:
    """The file has verdicts and what was seen, but no address, name or account."""
    shared_lab.wait_for("sql_listening")
    inventory, file = write_inventory(tmp_path, shared_lab), tmp_path / "contract.json"

    ran = vnuma("contract", "--sql", "sql16", "-i", inventory, "--output", file)

    assert ran.code == 0, ran.text
    text = file.read_text(encoding="utf-8")
    assert json.loads(text)["simulated"]
    judged = {name: one["verdict"] for name, one in json.loads(text)["beliefs"].items()}
    assert judged == {one.id: "held" for one in beliefs("sql")}
    end = shared_lab.vms["sql16"]
    assert [word for word in ("sql16", end.host, str(end.port), end.password) if word in text] == []


def test_a_server_that_is_no_test_clone_needs_a_permit(tmp_path: Path, lab: LabFactory) -> None:
    """No database is made there; with a change ticket it is asked."""
    running = lab()
    running.wait_for("sql_listening")
    path = write_inventory(tmp_path, running)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["all"]["children"]["vnuma_vms"]["hosts"]["sql16"]["vnuma_test_clone"] = False
    path.write_text(json.dumps(document), encoding="utf-8")

    refused = vnuma("contract", "--sql", "sql16", "-i", path)
    permitted = vnuma("contract", "--sql", "sql16", "-i", path, "--production", "--ticket", "CHG7")

    assert refused.code == 5
    assert refused.out == ""
    assert permitted.code == 0, permitted.text
