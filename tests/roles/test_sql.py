"""Roles sql_dataset and sql_benchmark on a lab's SQL Server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conftest import LabFactory
from tests.support.lab import LabHandle
from tests.support.playbook import Played, Step, play_each, play_roles
from tests.support.site import write_inventory
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.driver import discover
from vnuma.sqlserver.client.query import fetch, run

SMALL = {"sql_dataset_transaction_history_rows": 60, "sql_dataset_sales_order_detail_rows": 50}


def server_of(lab: LabHandle) -> SqlServer:
    """The lab's one SQL Server."""
    sql = lab.vms["sql16"]
    return SqlServer(
        host=sql.host,
        port=sql.port,
        user=sql.user,
        password=sql.password,
        ca_file=str(lab.vcenter.ca_file),
        driver=discover("auto"),
        kerberos=False,
    )


def databases(lab: LabHandle) -> set[str]:
    """The databases that the server lists."""
    with connect(server_of(lab)) as connection:
        return {str(row[0]) for row in fetch(connection, "SELECT name FROM sys.databases")}


def dataset(folder: Path, inventory: Path, *arguments: str, **options: Any) -> Played:
    """Play the role sql_dataset with a small dataset."""
    return play_roles(folder, inventory, {"sql_dataset": SMALL | options}, *arguments)


def test_a_dataset_is_made_once_and_dropped(tmp_path: Path, lab: LabFactory) -> None:
    """Check predicts and makes nothing; present, again, absent, again: changed, not, changed, not."""
    running = lab()
    inventory = write_inventory(tmp_path, running)

    planned = dataset(tmp_path, inventory, "--check", "--diff").only("sql_dataset")
    assert planned.changed
    assert "vnuma_study" not in databases(running)

    made = dataset(tmp_path, inventory).only("sql_dataset")
    assert made.changed
    assert made["diff"] == planned["diff"]
    assert made["diff"] == {"before": {"sql.database": None}, "after": {"sql.database": "vnuma_study"}}
    assert {name: table["rows"] for name, table in made["dataset"]["tables"].items()} == {
        "Production.TransactionHistory": 60,
        "Sales.SalesOrderDetail": 50,
    }
    assert "vnuma_study" in databases(running)

    present, absent = Step("sql_dataset", SMALL), Step("sql_dataset", SMALL | {"sql_dataset_state": "absent"})
    looks = [present, replace(present, check=True), replace(absent, check=True)]
    again, checked, planned = play_each(tmp_path, inventory, looks).all("sql_dataset")
    assert not again.changed
    assert again["dataset"]["tables"] == made["dataset"]["tables"]
    assert not checked.changed
    assert planned.changed
    assert "vnuma_study" in databases(running)

    dropped, again = play_each(tmp_path, inventory, [absent, absent]).all("sql_dataset")
    assert (dropped.changed, dropped["diff"]) == (True, planned["diff"])
    assert "vnuma_study" not in databases(running)
    assert not again.changed


def test_a_foreign_database_is_refused(tmp_path: Path, lab: LabFactory) -> None:
    """It is neither filled nor dropped, and check mode says so beforehand."""
    running = lab()
    with connect(server_of(running)) as connection:
        run(connection, "CREATE DATABASE [theirs]")
    steps = [
        Step("sql_dataset", SMALL | {"sql_dataset_database": "theirs", "sql_dataset_state": state}, check)
        for state in ("present", "absent")
        for check in (True, False)
    ]

    refused = play_each(tmp_path, write_inventory(tmp_path, running), steps).all("sql_dataset")

    assert [(failed.status, failed["error"], failed["exit_code"]) for failed in refused] == [
        ("failed", "ForeignDatabase", 4)
    ] * 4
    assert "theirs" in databases(running)


def test_the_benchmark_returns_its_timings(tmp_path: Path, lab: LabFactory) -> None:
    """One for each size, form and iteration, with the rows that the query must give; in check mode none."""
    workload = {"sizes": [10, 20], "forms": ["client", "server"]}
    benchmark = {"sql_benchmark_workload": workload, "sql_benchmark_iterations": 2}
    steps = [
        Step("sql_benchmark", benchmark, True),
        Step("sql_dataset", SMALL),
        Step("sql_benchmark", benchmark),
    ]

    ended = play_each(tmp_path, write_inventory(tmp_path, lab()), steps)

    checked, result = ended.all("sql_benchmark")
    assert (checked["timings"], result.changed) == ([], False)
    timings = result["timings"]
    assert {(t["size"], t["form"], t["iteration"]) for t in timings} == {
        (size, form, iteration) for size in (10, 20) for form in ("client", "server") for iteration in (1, 2)
    }
    assert {t["rows"] for t in timings} == {100, 400}
    assert all(t["elapsed_ms"] >= 0 and t["client_ms"] > 0 for t in timings)
