"""A study whose logins are Kerberos', from a keytab, with tickets that end long before the study does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import kdc as private_kdc
from tests.support.cli import vnuma
from tests.support.kdc import Kdc
from tests.support.lab import LabHandle
from tests.support.site import write_inventory, write_study

ACCOUNT = "svc-vnuma"


@pytest.fixture
def kdc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kdc]:
    """A realm whose account gets tickets of three seconds; its keytab is the environment's."""
    running = private_kdc.of_a_test(tmp_path / "kdc")
    try:
        file = running.keytab(ACCOUNT)
        running.admin(f'modprinc -maxlife "3 seconds" {ACCOUNT}')
        for name, text in (running.environment | {"KRB5_CLIENT_KTNAME": str(file)}).items():
            monkeypatch.setenv(name, text)
        yield running
    finally:
        running.stop()


@pytest.mark.long
def test_a_study_renews_its_tickets_from_a_keytab(kdc: Kdc, lab_binary: Path, tmp_path: Path) -> None:
    """Both cells are measured without kinit and without a password of SQL Server's in the inventory."""
    keys = kdc.folder / "sql.keytab"
    lab = LabHandle(lab_binary, tmp_path / "lab", ["--keytab", str(keys)])
    try:
        kdc.keytab(f"MSSQLSvc/localhost:{lab.vms['sql16'].port}", name=keys.name)
        inventory = write_inventory(tmp_path, lab)
        document = json.loads(inventory.read_text(encoding="utf-8"))
        wanted = document["all"]["children"]["vnuma_vms"]["hosts"]["sql16"]["vnuma_sql"]
        del wanted["user"], wanted["password"]
        wanted |= {"host": "localhost", "kerberos": True}
        inventory.write_text(json.dumps(document), encoding="utf-8")

        ran = vnuma("run", write_study(tmp_path), "-i", inventory)
    finally:
        lab.stop()

    assert ran.code == 0, ran.text
    assert kdc.first_tickets(ACCOUNT) > 1
