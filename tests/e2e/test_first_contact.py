"""vnuma doctor --record: how vCenter and SQL Server answer, without a name in it, and what the lab learns."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.conftest import LabFactory
from tests.support.cli import vnuma_here
from tests.support.site import write_inventory
from tools.lab_learn import learn


def test_a_recording_names_nobody_and_becomes_a_golden_case(lab: LabFactory, tmp_path: Path) -> None:
    """Faults, log lines, messages, columns and versions are there; names and passwords are not."""
    running = lab({"vms": [{"name": "payroll-db", "folder": "Secret"}]})
    running.wait_for("sql_listening")
    inventory = write_inventory(tmp_path, running)
    file = tmp_path / "contact.yml"

    ran = vnuma_here("doctor", "payroll-db", "-i", inventory, "--record", file)

    assert (ran.code, "Nothing was changed" in ran.out) == (0, True), ran.text
    text = file.read_text(encoding="utf-8")
    ours = (
        "payroll",
        "secret",
        "esx01",
        "administrator",
        "vsphere.local",
        "127.0.0.1",
        running.vcenter.password,
    )
    assert [word for word in ours if word in text.lower()] == []
    document = yaml.safe_load(text)
    assert document["versions"] == {
        "api": "8.0.3.0",
        "esxi": "6.0.0 build 2494585",
        "sql_server": "15.0.4430.1",
    }
    assert document["vsphere"]["faults"][0]["fault"] == "ManagedObjectNotFound"
    assert document["sql_server"]["answers"][-1]["answer"][-1]["error"]

    learned = learn(file, tmp_path / "recorded")
    assert learned.name == "lab-esxi-6.0.0-build-2494585-sql-15.0.4430.1.yml"
    assert learned.read_text(encoding="utf-8") == text
