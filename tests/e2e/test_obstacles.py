"""What keeps a workload from running: found before the first change to the VM, each in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.looking import settings_now
from tests.support.studies import LOG
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.run.next_cell import NoCell, claim_next_cell
from vnuma.errors import PreflightBlocked, PrivilegeMissing
from vnuma.store.rows import Claim

SHEA: dict[str, Any] = YAML(typ="safe").load(
    Path(__file__).parents[2] / "lab" / "internal" / "scenario" / "builtin" / "shea2012.yml"
)
SQL_2014 = {"version": "12.0.6024.0", "soft_numa": False, "edition": "Developer"}
SQL_2019 = {"version": "15.0.4430.1", "edition": "Developer"}


def streams(shape: dict[str, Any] | None = None, *, vcpus: int = 12, scale: float = 0.001) -> dict[str, Any]:
    """A study of local against remote pages."""
    arms = [
        {"topology": "2x6", "name": place, "workload": {"placement": place}, **(shape or {})}
        for place in ("local", "remote")
    ]
    workload = {"name": "reporting_streams", "sizes": [2], "scale_factor": scale}
    return {"vcpus": vcpus, "reference": "local", "arms": arms, "workload": workload}


def shea(vm: dict[str, Any] | None = None, **sql: Any) -> dict[str, Any]:
    """The machine of shea2012 with another VM or SQL Server."""
    (own,) = SHEA["vms"]
    return SHEA | {"vms": [own | (vm or {}) | {"sql": own["sql"] | sql}]}


def with_sql(base: dict[str, Any], **sql: Any) -> dict[str, Any]:
    """A machine whose VM has that SQL Server."""
    return {"name": "adkin2014", "vms": [{"name": "sql16", "sql": base | sql}]}


def limited(*granted: str) -> dict[str, Any]:
    """The logins of a server on which the study's may do this."""
    return {"logins": {"limited": list(granted)}}


CONTROL = {
    **{"reference": "2x8", "arms": ["2x8"], "all_arms": {"affinity": "physical_cores"}},
    "design": {"order": "fixed", "a_a": False, "control": "remote", "warmups": 0},
    "workload": {"forms": ["server"]},
}
SCRIPT = {"name": "sql_script", "statements": {"rows": "SELECT n FORM dbo.pairs WHERE"}, "database": "Sales"}
SEES, MAKES, SETS = "VIEW SERVER STATE", "CREATE ANY DATABASE", "ALTER SETTINGS"
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "ports on Linux": (shea(platform="linux"), streams(), ["P29", "runs on Linux"]),
    "ports of single addresses": (shea(listen_all=False), streams(), ["P29", "(Listen All is No)"]),
    "dynamic ports": (shea(dynamic_port=True), streams(), ["P29", "exactly one fixed TCP port"]),
    "ports unseen": (shea(**limited()), streams(), ["may not see the server's state"]),
    "ports unwritten": (shea(**limited(SEES, SETS, MAKES)), streams(), ["not a member of sysadmin"]),
    "memory": (shea({"memory_gb": 8}), streams(scale=1), ["(50,000,000 rows) does not fit one memory node"]),
    "one node": (shea(), streams({"topology": "1x4"}, vcpus=4), ["C01"]),
    "one physical node": (shea(), streams({"topology": "2x3", "vnuma_nodes": 2}, vcpus=6), ["C03"]),
    "a control on one physical node": ({"name": "paper"}, CONTROL, ["C03"]),
    "no In-Memory OLTP": (with_sql(SQL_2014, edition="Standard"), LOG, ["P29", "(In-Memory OLTP)"]),
    "no Resource Governor": (with_sql(SQL_2019, edition="Standard"), LOG, ["P29", "no Resource Governor"]),
    "SQL Server 2012": (with_sql(SQL_2014, version="11.0.7001.0"), LOG, ["P29", "older than 2014"]),
    "no affinity": (with_sql(SQL_2014, **limited(SEES, MAKES)), LOG, ["lacks ALTER SETTINGS"]),
    "no pool": (with_sql(SQL_2014, **limited(SEES, MAKES, SETS)), LOG, ["lacks CONTROL SERVER"]),
    "log writers unseen": (with_sql(SQL_2014, **limited(SETS, MAKES)), LOG, [SEES]),
    "a scan beyond memory": (
        {"name": "paper"},
        CONTROL | {"workload": {"name": "scan_aggregate", "sizes": [60000]}},
        ["need 60,000 MB"],
    ),
    "a script": (
        {"name": "paper"},
        {"workload": SCRIPT, "arms": ["1x16"]},
        ["workload.database: Sales does not exist", "workload.statements.rows:"],
    ),
    "a login without a right": (with_sql(SQL_2019, **limited(SEES)), {}, ["P00", f"lacks {MAKES}"]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_keeps_a_workload_from_running_is_said_before_the_first_change(
    tmp_path: Path, lab: LabFactory, case: str
) -> None:
    """All of it in one refusal; the VM is unchanged."""
    scenario, study, said = CASES[case]
    running = lab(scenario)
    before = settings_now(running)
    if "logins" in scenario.get("vms", [{}])[0].get("sql", {}):
        object.__setattr__(running.vms["sql16"], "user", "limited")

    with pytest.raises(PreflightBlocked) as blocked:
        Steps.prepared(tmp_path / "a", running, **study)

    assert [words for words in said if words not in str(blocked.value)] == []
    assert settings_now(running) == before


def test_a_port_that_somebody_has_is_refused(tmp_path: Path, lab: LabFactory) -> None:
    """It could not be mapped to a node."""
    running = lab(shea())
    endpoint = running.vms["sql16"]
    object.__setattr__(endpoint, "node_ports", (endpoint.port, endpoint.node_ports[0]))

    with pytest.raises(PreflightBlocked):
        Steps.prepared(tmp_path / "a", running, **streams())


def test_without_in_memory_oltp_the_disk_form_alone_can_run(tmp_path: Path, lab: LabFactory) -> None:
    """As the refusal advises: nothing is in its way."""
    on_disk = LOG | {"workload": LOG["workload"] | {"forms": ["disk"]}}

    assert Steps.prepared(tmp_path / "a", lab(with_sql(SQL_2014, edition="Standard")), **on_disk).run.name


def test_a_registry_that_may_not_be_written_ends_the_vms_cells_at_the_first_boot(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The ports are mapped in the first boot that proves whose SQL Server it is.

    Every further cell would fail alike, until the VM is taken over again: permission may have been granted
    then.
    """
    running = lab(shea(registry_read_only=True))
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running, **streams())

    context = steps.take()
    attempt = steps.shape(context)
    boot_cell(context, attempt)
    with pytest.raises(PrivilegeMissing):
        ready_cell(context, attempt)
    ended = claim_next_cell(context)

    assert isinstance(ended, NoCell)
    assert ended.final
    steps.restore()
    assert settings_now(running) == before
    again = claim_next_cell(steps.take())
    assert isinstance(again, Claim)
    assert again.number == 2
