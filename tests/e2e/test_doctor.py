"""vnuma doctor: how we get in, and what the account may do, each with what helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma_here
from tests.support.site import write_inventory
from vnuma.domain.vm.role import ELSEWHERE, ROLE
from vnuma.sqlserver.client.driver import discover

NEEDED = [need.privilege for need in ROLE]
HELPS = {item.privilege: item for item in ELSEWHERE}
HELPED = "Datastore.Browse"


def checks(inventory: Path, subject: str) -> list[dict[str, object]]:
    """What the doctor says of one subject, as its JSON has it."""
    ran = vnuma_here("doctor", "-i", inventory, "--format", "json")
    return [item for item in json.loads(ran.out)["checks"] if item["subject"] == subject]


def test_a_certificate_that_ends_soon_is_a_warning_with_its_name_and_day(
    tmp_path: Path, lab: LabFactory
) -> None:
    """While there is time to renew it; a long-lived one only shows its date."""
    soon = write_inventory(tmp_path, lab(certificate_days=20))

    (warned,) = checks(soon, "certificate")
    ran = vnuma_here("doctor", "-i", soon)

    assert warned["state"] == "warn"
    assert "CN=vnuma lab (issuer CN=vnuma lab CA) of 127.0.0.1 expires on 20" in str(warned["what"])
    assert ran.code == 0


@pytest.mark.parametrize(
    ("verify", "subject"), [(True, "vCenter"), pytest.param(False, "certificate", marks=pytest.mark.long)]
)
def test_an_expired_certificate_fails_with_its_day(
    tmp_path: Path, lab: LabFactory, verify: bool, subject: str
) -> None:
    """Whether it keeps us out, or its check is turned off."""
    inventory = write_inventory(tmp_path, lab(certificate_days=-3), verify_tls=verify)

    failed = [item for item in checks(inventory, subject) if item["state"] == "FAIL"]

    assert len(failed) == 1
    assert failed[0]["more"]
    assert vnuma_here("doctor", "-i", inventory).code == 4


@pytest.mark.parametrize(
    "privilege", [HELPED, *(pytest.param(name, marks=pytest.mark.long) for name in HELPS if name != HELPED)]
)
def test_an_optional_privilege_is_missed_by_name_with_what_does_not_work(
    tmp_path: Path, lab: LabFactory, privilege: str
) -> None:
    """It never fails the doctor, and the others are not named."""
    granted = [*NEEDED, *(name for name in HELPS if name != privilege)]
    running = lab(
        accounts=[{"user": "limited", "privileges": granted}],
        clusters=[{"name": "c1", "drs": "off"}],
        hosts=[{"name": "esx01", "cluster": "c1"}],
    )
    inventory = write_inventory(tmp_path, running, user="limited")

    (missed,) = checks(inventory, "optional")

    assert missed["state"] == "warn"
    assert str(missed["what"]).startswith(f"{privilege} missing on ")
    assert HELPS[privilege].without in str(missed["what"])
    assert vnuma_here("doctor", "-i", inventory).code == 0


def test_what_a_host_by_itself_does_not_have_is_not_asked_of_it(tmp_path: Path, lab: LabFactory) -> None:
    """Neither custom attributes nor a cluster."""
    inventory = write_inventory(tmp_path, lab(standalone=True))

    (held,) = checks(inventory, "optional")

    assert held["what"] == "all 3 optional privileges"


def test_the_connection_to_sql_server_is_reported_as_the_inventory_has_it(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The driver that it names by a path, and a warning for an open connection; a verified one is silent."""
    inventory = write_inventory(tmp_path, lab())
    assert checks(inventory, "SQL wire") == []

    library = tmp_path / "libtdsodbc-of-ours.so"
    path = discover("freetds").path
    assert path is not None
    library.symlink_to(path)
    document = json.loads(inventory.read_text(encoding="utf-8"))
    document["all"]["children"]["vnuma_vms"]["hosts"]["sql16"]["vnuma_sql"] |= {
        "encrypt": "no",
        "driver": str(library),
    }
    inventory.write_text(json.dumps(document), encoding="utf-8")
    answer = json.loads(vnuma_here("doctor", "-i", inventory, "--format", "json").out)
    ran = answer["checks"]
    assert (answer["simulated"], answer["scenario"]) == (True, "paper")

    told = {item["subject"]: item for item in ran}
    assert str(library) in told["driver"]["what"]
    assert told["SQL wire"]["state"] == "warn"
    assert told["SQL Server"]["state"] == "ok"


def test_an_unknown_vcenter_says_nothing_about_sql_server(tmp_path: Path, lab: LabFactory) -> None:
    """Each end is asked by itself: the name that nobody knows is vCenter's alone."""
    running = lab()
    running.wait_for("sql_listening")
    site = write_inventory(tmp_path, running, host="nosuch.invalid")

    (vcenter,) = checks(site, "vCenter")
    (sql,) = checks(site, "SQL Server")

    assert vcenter["state"] == "FAIL"
    assert sql["state"] == "ok"


def test_a_vm_that_vcenter_does_not_have_fails_as_vm(tmp_path: Path, lab: LabFactory) -> None:
    """vCenter itself answered: its own line stays ok."""
    running = lab()
    site = write_inventory(tmp_path, running)
    path = running.vms["sql16"].path
    site.write_text(site.read_text(encoding="utf-8").replace(path, "sql61"), encoding="utf-8")

    (server,) = checks(site, "vCenter")
    (vm,) = checks(site, "VM")

    assert (server["state"], vm["state"]) == ("ok", "FAIL")
