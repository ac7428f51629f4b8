"""vnuma doctor --record: how vCenter and SQL Server answer, without a name in it, and what tests learn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.conftest import LabFactory
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from tests.vsphere.support import vcenter_of
from tools.lab_learn import learn
from tools.properties_doc import seen
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.doctor import first_contact
from vnuma.engine.doctor.first_contact import MOST_BYTES, record_contact
from vnuma.vsphere.connect import connect
from vnuma.vsphere.recording import HOST_OPTIONS

KEYS = {"guestinfo.owner": "ann@corp.example", "numa.nodeAffinity": "10.1.2.3", "vnuma.note": "payroll"}
ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", re.IGNORECASE)
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def test_a_recording_names_nobody_and_is_kept_for_replay(lab: LabFactory, tmp_path: Path) -> None:
    """No name, address, UUID, reference or key of the lab's inventory is in it; nor a property not listed."""
    vm = {"name": "payroll-db", "folder": "Secret", "extra_config": KEYS}
    running = lab({"vms": [vm, {"name": "ledger"}]})
    running.wait_for("sql_listening")
    inventory = write_inventory(tmp_path, running)
    file = tmp_path / "contact.yml"

    ran = vnuma_here("doctor", "payroll-db", "-i", inventory, "--record", file)

    assert ran.code == 0, ran.text
    text = file.read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    assert len(text) <= MOST_BYTES
    names, references = _of_the_lab(running)
    secret = {*names, *KEYS.values(), "owner"} - {
        "vm",
        "host",
        "datastore",
        "network",
    }  # vSphere's own folders
    assert [word for word in secret if word.lower() in text.lower()] == []
    assert [moid for moid in references if re.search(rf"\b{re.escape(moid)}\b", text)] == []
    versions = [document["sql_server"]["version"], document["vsphere"]["api"]]
    assert versions == ["15.0.4430.1", "8.0.3.0"]
    assert {*ADDRESS.findall(text), *MAC.findall(text)} == {"8.0.3.0"}
    assert all(found.startswith("00000000-") for found in UUID.findall(text))
    recorded = re.findall(r'<obj type="(\w+)">|<name>([\w.]+)</name><val', document["vsphere"]["objects"])
    assert {"disabledMethod", HOST_OPTIONS, "hardware.numaInfo"} <= {path for _, path in recorded}
    listed = {path for paths in seen().values() for path in paths} | {HOST_OPTIONS}
    assert {path for _, path in recorded if path} <= listed
    assert document["sql_server"]["rows"]["dm_os_nodes"]

    learned = learn(file, tmp_path / "recorded")
    assert learned.name == "lab-8.0.3-sql-15.0.4430.1.yml"
    assert learned.read_text(encoding="utf-8") == text


def test_a_vm_without_sql_server_is_recorded_too(shared_lab: LabHandle, tmp_path: Path) -> None:
    """vCenter's answers are worth having without those of a SQL Server; why they lack is recorded."""
    target = Inventory(write_inventory(tmp_path, shared_lab)).targets(["sql16"])["sql16"]
    file = tmp_path / "contact.yml"

    record_contact(target.model_copy(update={"sql": None}), file)

    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert document["sql_server"] == {"not_recorded": "no SQL Server in the inventory"}
    assert document["vsphere"]["objects"]


def test_answers_that_do_not_fit_are_not_written(
    shared_lab: LabHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few entries of each list are kept, the file never exceeds its limit."""
    monkeypatch.setattr(first_contact, "MOST_BYTES", 5_000)
    file = tmp_path / "contact.yml"

    ran = vnuma_here("doctor", "sql16", "-i", write_inventory(tmp_path, shared_lab), "--record", file)

    assert (ran.code, file.exists()) == (4, False)


def _of_the_lab(running: object) -> tuple[list[str], list[str]]:
    """Every name and every reference that the lab's vCenter has, with its accounts."""
    with connect(vcenter_of(running)) as session:  # type: ignore[arg-type]
        view = session.content.viewManager.CreateContainerView(session.content.rootFolder, [], True)
        found = list(view.view)
        names = [str(one.name) for one in found]
        names += [session.transport.vcenter.user, session.transport.vcenter.host, session.about.uuid]
        return names, [one._GetMoId() for one in found]
