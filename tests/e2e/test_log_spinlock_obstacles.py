"""What keeps the log's load from running: one sentence each, before the first change to the VM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.studies import LOG
from vnuma.errors import PreflightBlocked

SQL_2014 = {"version": "12.0.6024.0", "soft_numa": False}
NO_XTP = "This SQL Server has no memory-optimised tables (In-Memory OLTP)."
EVERYTHING_BUT = ["VIEW SERVER STATE", "CREATE ANY DATABASE"]


def with_sql(lab: LabFactory, **sql: Any) -> LabHandle:
    """A lab whose VM has that SQL Server."""
    return lab("adkin2014", vms=[{"name": "sql16", "sql": SQL_2014 | {"edition": "Developer"} | sql}])


def refused(home: Path, running: LabHandle) -> str:
    """Preflight's text; the VM is unchanged."""
    before = settings_now(running)
    with pytest.raises(PreflightBlocked) as blocked:
        Steps.prepared(home, running, **LOG)
    assert settings_now(running) == before
    return str(blocked.value)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ({"edition": "Standard"}, NO_XTP),
        ({"version": "15.0.4430.1", "edition": "Standard"}, "This edition has no Resource Governor"),
        ({"version": "11.0.7001.0"}, "This SQL Server is older than 2014"),
    ],
    ids=["no In-Memory OLTP", "no Resource Governor", "2012"],
)
def test_an_edition_that_lacks_what_is_needed_is_refused(
    tmp_path: Path, lab: LabFactory, sql: dict[str, Any], sentence: str
) -> None:
    """One sentence, once, and the way out."""
    said = refused(tmp_path / "a", with_sql(lab, **sql))

    assert said.count("P29") == 1
    assert sentence in said


def test_without_in_memory_oltp_the_disk_form_alone_can_run(tmp_path: Path, lab: LabFactory) -> None:
    """As the refusal advises: nothing is in its way."""
    on_disk = LOG | {"workload": LOG["workload"] | {"forms": ["disk"]}}

    assert Steps.prepared(tmp_path / "a", with_sql(lab, edition="Standard"), **on_disk).run.name


@pytest.mark.parametrize(
    ("granted", "sentence"),
    [
        (
            [*EVERYTHING_BUT],
            "The login may not set the process affinity (ALTER SERVER CONFIGURATION): it lacks ALTER "
            "SETTINGS.",
        ),
        (
            [*EVERYTHING_BUT, "ALTER SETTINGS"],
            "The login may not make a resource pool (CREATE RESOURCE POOL): it lacks CONTROL SERVER.",
        ),
        (["ALTER SETTINGS", "CREATE ANY DATABASE"], "VIEW SERVER STATE"),
    ],
    ids=["no ALTER SETTINGS", "no CONTROL SERVER", "no VIEW SERVER STATE"],
)
def test_a_login_with_too_few_rights_is_refused(
    tmp_path: Path, lab: LabFactory, granted: list[str], sentence: str
) -> None:
    """Each missing right by its name, with the GRANT that gives it."""
    running = with_sql(lab, logins={"limited": granted})
    object.__setattr__(running.vms["sql16"], "user", "limited")

    said = refused(tmp_path / "a", running)

    assert sentence in said
