"""What a node does for a controller, and what it refuses: its own side, without a daemon."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from tests.store.build import new_run
from tests.support.lab import LabHandle
from tests.support.postgresql import Cluster
from tests.support.site import write_inventory, write_study
from vnuma import __version__
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.inventory import read_targets
from vnuma.engine.mesh.request import error_from, request_about
from vnuma.engine.preflight.findings import Finding
from vnuma.engine.preflight.permit import Permit
from vnuma.engine.preflight.plan_by_kind import plan_all
from vnuma.engine.sites.answering import answer
from vnuma.engine.sites.planning import PLANS, Planned, plans_of
from vnuma.errors import EnvironmentProblem, InputError, VnumaError
from vnuma.store import facts, leases, runs, sites, tables, vms
from vnuma.store.open import open_store
from vnuma.store.types import iso


@pytest.fixture
def plan(
    home: Path, tmp_path: Path, shared_lab: LabHandle, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """A controller's request for the plan of the lab's first VM, answered by its node."""
    monkeypatch.setenv("VNUMA_NODE", "site-b")
    inventory = write_inventory(tmp_path, shared_lab, ["sql16"])
    text = write_study(tmp_path).read_text(encoding="utf-8")
    permit = {"production": False, "ticket": None, "tag": None}
    about = request_about("site-b", read_targets(inventory), inventory)
    return {**about, "ask": "plan", "study": text, "permit": permit}


def refusal(request: dict[str, Any]) -> VnumaError:
    """The error that the node answers with."""
    return error_from("site-b", answer(request)["error"])


def test_a_plan_comes_through_the_mesh_as_it_was_made(plan: dict[str, Any], tmp_path: Path) -> None:
    """Every field of it: what the controller shows and stores is what the node has read."""
    inventory = tmp_path / "hosts.yml"
    study = parse_study(plan["study"], "study")

    told = PLANS.validate_json(answer(plan)["plans"])

    assert told == plan_all(study, read_targets(inventory), Permit(), inventory)


@pytest.mark.parametrize("here", ["site-c", None])
def test_a_node_answers_no_request_to_another(
    plan: dict[str, Any], here: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes whose folders were swapped would measure each other's VMs."""
    monkeypatch.delenv("VNUMA_NODE")
    if here:
        monkeypatch.setenv("VNUMA_NODE", here)

    refused = refusal(plan)

    assert isinstance(refused, EnvironmentProblem)
    assert "asked site-b" in refused.what
    assert (here or "VNUMA_NODE is not set") in refused.what
    assert "node.env" in str(refused.fix)


@pytest.mark.parametrize(
    ("altered", "where"),
    [
        ({"ask": "rum"}, "it"),
        ({"study": None}, "study"),
        ({"permit": {"production": "perhaps"}}, "permit.production"),
        ({"hosts": 7}, "hosts"),
        ({"names": "sql16"}, "names"),
        ({"asked_at": "yesterday"}, "asked_at"),
        ({"ask": "prepare", "newest": ["quick.1"]}, "newest.1"),
        ({"ask": "restore", "newest": None, "run": "quick.1", "choice": "mine", "show": False}, "choice"),
    ],
)
def test_a_malformed_request_is_refused_with_what_is_wrong(
    plan: dict[str, Any], altered: dict[str, Any], where: str
) -> None:
    """However well it is signed: an error with a next step, and no bug."""
    refused = refusal(plan | altered)

    assert isinstance(refused, InputError)
    assert f"{where}: " in refused.what
    assert "same version" in str(refused.fix)


@pytest.mark.parametrize(("choice", "late"), [("baseline", True), ("theirs", True), ("refuse", False)])
def test_a_decision_that_arrives_late_is_not_carried_out(
    plan: dict[str, Any], choice: str, late: bool
) -> None:
    """The node was out of reach. Others may have changed the VM since; without a decision that is safe."""
    asked = {"ask": "restore", "newest": None, "run": "quick.1", "choice": choice, "show": False}
    before = (datetime.now(UTC) - timedelta(hours=9)).isoformat()

    refused = refusal(plan | asked | {"asked_at": before})

    assert isinstance(refused, EnvironmentProblem)
    assert (f"--{choice}" in refused.what, "file on the node" in refused.what) == (late, not late)


@pytest.mark.parametrize("given", [[], "plan", None, {}, {"version": __version__}])
def test_what_is_not_a_request_is_refused(given: object) -> None:
    """The answer is an error for it too."""
    assert answer(given)["error"]["fix"]


def test_a_node_without_a_writable_home_answers_with_that(
    plan: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller would otherwise read nothing but the exit code of a program far away."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path / "file" / "home"))

    refused = refusal(plan | {"ask": "doctor"})

    assert str(tmp_path / "file") in refused.what
    assert refused.fix


def test_a_node_measures_only_the_study_that_was_signed(
    plan: dict[str, Any], postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write the store may alter a study's text, and leave its hash as it was."""
    url = postgresql.new_store()
    store = open_store(url)
    run = new_run(store)
    with store.write() as connection:
        sites.add_sites(connection, run.id, ["site-b"])
        signed = runs.get_study(connection, run.study_id).digest
        connection.execute(update(tables.study).values(yaml=tables.study.c.yaml + "# altered\n"))
    monkeypatch.setenv("VNUMA_STORE", url)

    refused = refusal(plan | {"ask": "run", "run": [run.name, iso(run.created_at)], "study": signed})

    assert isinstance(refused, InputError)
    assert "altered the store" in refused.what
    assert "audit verify" in str(refused.fix)


@pytest.mark.parametrize("ask", ["plan", "prepare", "run", "restore"])
def test_a_node_of_another_version_does_nothing(ask: str) -> None:
    """Two versions could mean different things by the same words."""
    refused = refusal({"ask": ask, "version": "0.0.1"})

    assert isinstance(refused, EnvironmentProblem)
    assert __version__ in refused.what
    assert "0.0.1" in refused.what


@pytest.mark.parametrize(
    "password", [{"command": ["touch", "STARTED"]}, "{{ lookup('pipe', 'touch STARTED') }}"]
)
def test_a_node_plans_with_no_program_that_a_request_names(
    plan: dict[str, Any], tmp_path: Path, password: object
) -> None:
    """Neither for a password nor from a template: who can ask must not get a shell."""
    started = tmp_path / "started"
    document = json.loads(plan["hosts"])
    host = document["all"]["hosts"]["sql16"]
    host["vnuma_vcenter"]["password"] = json.loads(json.dumps(password).replace("STARTED", str(started)))

    refused = refusal(plan | {"hosts": json.dumps(document)})

    assert isinstance(refused, InputError)
    assert not started.exists()


def test_a_node_loads_no_driver_that_a_request_names_by_its_file(plan: dict[str, Any]) -> None:
    """A library's code runs as soon as it is loaded."""
    document = json.loads(plan["hosts"])
    document["all"]["hosts"]["sql16"]["vnuma_sql"]["driver"] = {"__ansible_unsafe": "/tmp/libmsodbcsql-18.so"}

    refused = refusal(plan | {"hosts": json.dumps(document)})

    assert isinstance(refused, InputError)
    assert "/tmp/libmsodbcsql-18.so" in refused.what
    assert "VNUMA_ODBC_DRIVER" in str(refused.fix)


def test_a_node_calls_sql_server_from_no_other_machine(plan: dict[str, Any], tmp_path: Path) -> None:
    """Ansible's connection to that machine could name a program to start on the node."""
    calls = {"name": "call_volume", "client": "client1"}
    text = write_study(tmp_path, workload=calls).read_text(encoding="utf-8")

    assert "workload.client" in refusal(plan | {"study": text}).what


def test_a_node_with_another_store_begins_nothing(
    plan: dict[str, Any], postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of the same name there would be another one: the moment of its creation differs."""
    theirs = new_run(open_store(postgresql.new_store()))
    ours = postgresql.new_store()
    new_run(open_store(ours))
    known = [theirs.name, iso(theirs.created_at)]
    monkeypatch.setenv("VNUMA_STORE", ours)

    refused = [
        refusal(plan | {"ask": "prepare", "newest": known}),
        refusal(plan | {"ask": "run", "run": known, "study": ""}),
    ]

    assert [theirs.name in error.what and "another one" in error.what for error in refused] == [True, True]
    assert "VNUMA_STORE" in str(refused[0].fix)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_node_whose_clock_is_far_off_begins_nothing(
    plan: dict[str, Any], hours: int, postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its signs of life would be old at once, or look fresh after its death."""
    monkeypatch.setenv("VNUMA_STORE", postgresql.new_store())
    asked_at = datetime.now(UTC) - timedelta(hours=hours)

    refused = refusal(plan | {"ask": "prepare", "newest": None, "asked_at": asked_at.isoformat()})

    assert isinstance(refused, EnvironmentProblem)
    assert "site-b: its clock" in refused.what
    assert "NTP" in str(refused.fix)


def test_a_command_for_what_a_node_kept_names_no_file_of_its_own(
    plan: dict[str, Any], postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request's inventory is gone by then, and the controller does not reach that SQL Server."""
    (vm,) = PLANS.validate_json(answer(plan)["plans"]).values()
    url = postgresql.new_store()
    store = open_store(url)
    with store.write() as connection:
        run = runs.create_run(connection, runs.save_study(connection, "small", plan["study"]), seed=7)
        sites.add_sites(connection, run.id, ["site-b"])
        row = vms.add_vm(
            connection, run.id, vm_key=vm.key, name="sql16", path=vm.path, esxi_host="esx", node="site-b"
        )
        leases.take_lease(connection, vm.key, run.id, "ops@ctl1")
        facts.add_vm_facts(connection, row.id, "dataset", {"database": "vnuma"})
    monkeypatch.setenv("VNUMA_STORE", url)
    wanted = {"ask": "restore", "run": run.name, "choice": "refuse", "show": False}

    told = answer(plan | wanted | {"newest": [run.name, iso(run.created_at)]})

    assert told["problems"] == []
    (words,) = told["kept"]
    assert " -i INVENTORY --limit sql16 " in words
    assert "site-b" in words


def test_a_password_that_a_node_lacks_is_set_in_its_environment_file(
    plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fix is for the process that asks for it, which no shell starts."""
    document = json.loads(plan["hosts"])
    document["all"]["hosts"]["sql16"]["vnuma_vcenter"]["password"] = {
        "env": {"__ansible_unsafe": "NOT_SET_1"}
    }
    monkeypatch.setenv("VNUMA_NODE", "site-b")

    refused = refusal(plan | {"hosts": json.dumps(document)})

    assert "NOT_SET_1" in refused.what
    assert "node.env" in str(refused.fix)
    assert "restart vnuma-mesh" in str(refused.fix)


def test_a_node_without_a_shared_store_begins_nothing(plan: dict[str, Any]) -> None:
    """A file on the node would hide from the controller what is measured there."""
    refused = refusal(plan | {"ask": "prepare", "newest": None})

    assert "sites share one PostgreSQL" in refused.what
    assert "node.env" in str(refused.fix)


def test_a_node_answers_for_its_own_vms_alone(plan: dict[str, Any]) -> None:
    """A plan of another's VM, which may hide what blocks it, is not taken. What blocks names the node."""
    (there,) = PLANS.validate_json(answer(plan)["plans"]).values()
    blocked = dataclasses.replace(there, findings=(Finding("P07", "block", "x"), Finding("Q01", "warn", "y")))
    forged = dataclasses.replace(there, findings=())
    answers = {
        "site-b": Planned({"sql-b": there, "sql-c": forged, "sql-here": forged}),
        "site-c": Planned({"sql-c": blocked}),
    }

    found = plans_of({"site-c": ["sql-c"], "site-b": ["sql-b", "sql-b2"]}, answers)

    assert found.keys() == {"sql-b", "sql-c"}
    assert [one.what for one in found["sql-c"].findings] == ["site-c: x", "y"]
