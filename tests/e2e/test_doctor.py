"""vnuma doctor: how we get in, and what the account may do, each with what helps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import in_json, vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from vnuma.domain.vm.role import ELSEWHERE, ROLE
from vnuma.sqlserver.client.driver import discover

NEEDED = list(ROLE)
HELPS = {item.privilege: item for item in ELSEWHERE}
HELPED = "Datastore.Browse"


def checks(inventory: Path, subject: str) -> list[dict[str, object]]:
    """What the doctor says of one subject, as its JSON has it."""
    ran = vnuma_here("doctor", "-i", inventory, "--format", "json")
    return [item for item in json.loads(ran.out)["checks"] if item["subject"] == subject]


def test_a_certificate_that_ends_soon_is_a_warning(tmp_path: Path, lab: LabFactory) -> None:
    """While there is time to renew it."""
    soon = write_inventory(tmp_path, lab(certificate_days=20))

    (warned,) = checks(soon, "certificate")

    assert warned["state"] == "warn"
    assert vnuma_here("doctor", "-i", soon).code == 0


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


def states(inventory: Path) -> dict[str, str]:
    """What the doctor says, by subject."""
    told = in_json("doctor", "-i", inventory)
    return {one["subject"]: one["state"] for one in told["checks"]} | {"scenario": str(told["scenario"])}


@pytest.mark.parametrize(
    ("vcenter", "sql", "path", "expected"),
    [
        ({}, {}, None, {"vCenter": "ok", "SQL Server": "ok", "scenario": "paper"}),
        (
            {},
            {"encrypt": "no", "driver": "OURS"},
            None,
            {"driver": "ok", "SQL wire": "warn", "SQL Server": "ok"},
        ),
        ({"host": "nosuch.invalid"}, {}, None, {"vCenter": "FAIL", "SQL Server": "ok"}),
        ({}, {}, "sql61", {"vCenter": "ok", "VM": "FAIL"}),
    ],
    ids=["all is well", "a driver by its path, unencrypted", "no such vCenter", "no such VM"],
)
def test_each_end_is_asked_by_itself(
    tmp_path: Path,
    shared_lab: LabHandle,
    vcenter: dict[str, Any],
    sql: dict[str, str],
    path: str | None,
    expected: dict[str, str],
) -> None:
    """What is wrong with one says nothing about the other."""
    shared_lab.wait_for("sql_listening")
    library = tmp_path / "libtdsodbc-of-ours.so"
    library.symlink_to(str(discover("freetds").path))
    inventory = write_inventory(tmp_path, shared_lab, **vcenter)
    document = json.loads(inventory.read_text(encoding="utf-8"))
    host = document["all"]["children"]["vnuma_vms"]["hosts"]["sql16"]
    host["vnuma_sql"] |= {name: value.replace("OURS", str(library)) for name, value in sql.items()}
    host["vnuma_vm"] = path or host["vnuma_vm"]
    inventory.write_text(json.dumps(document), encoding="utf-8")

    found = states(inventory)

    assert expected.items() <= found.items()
    assert ("SQL wire" in found) is ("SQL wire" in expected)
