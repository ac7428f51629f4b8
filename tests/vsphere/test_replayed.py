"""The product against what two real vCenters answered, over SOAP.

`tests/support/replay.py` says what was added to the recordings. Nothing answers as SQL Server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.support.cli import Ran, vnuma_here
from tests.support.replay import FOLDER, replaying
from vnuma import logins
from vnuma.contract.suite import SEEN_FOR_REAL, Verdict
from vnuma.contract.vcenter import ask_vcenter
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.inventory import Inventory

STUDY = "name: replayed\nvms: [sql16]\nvcpus: 2\narms: [1x2, 2x1]\nreference: 1x2\n"


@dataclass(frozen=True)
class Site:
    """An inventory whose one VM is a recorded one, and a folder for files."""

    inventory: Path
    folder: Path

    def run(self, *arguments: str | Path) -> Ran:
        return vnuma_here(*arguments, "-i", self.inventory)


def _site(folder: Path, port: int, ca_file: Path, vm: str) -> Site:
    (folder / "secret").write_text("x\n", encoding="utf-8")
    password = {"file": str(folder / "secret")}
    host = {
        "vnuma_vm": vm,
        "vnuma_test_clone": True,
        "vnuma_vcenter": {
            **{"host": "127.0.0.1", "port": port, "user": "u", "password": password},
            "ca_file": str(ca_file),
        },
        "vnuma_sql": {"host": "127.0.0.1", "port": 9, "user": "sa", "password": password},
    }
    inventory = folder / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": {"sql16": host}}}), encoding="utf-8")
    (folder / "study.yml").write_text(STUDY, encoding="utf-8")
    return Site(inventory, folder)


def _require_recordings() -> None:
    if not FOLDER.is_dir():
        pytest.skip("no recordings of real servers here")


@pytest.fixture(autouse=True)
def _each_connection_logs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay has no sessions to share, and a play that ran in this process may have begun to share them."""
    monkeypatch.setattr(logins, "_sharing", [])


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vCenter 6.7 with ESXi 6.7 on a Dell R720."""
    _require_recordings()
    folder = tmp_path_factory.mktemp("old")
    recording = FOLDER / "vsphere/vcenter-6.7.xml"
    with replaying(recording, folder, version="6.7.0", build="9433931", api="6.7") as there:
        yield _site(folder, there.port, there.ca_file, "vm98")


@pytest.fixture
def new(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """vCenter 8.0.3 with a nested ESXi 8.0.3 and two vCLS VMs; the parameter is the inventory's VM."""
    _require_recordings()
    recording = FOLDER / "vsphere/vcenter-8.0.3.xml"
    with replaying(recording, tmp_path, version="8.0.3", build="69507950", api="8.0.3.0") as there:
        yield _site(tmp_path, there.port, there.ca_file, getattr(request, "param", "vCLS-vm03"))


def test_recorded_answers_support_the_beliefs_that_the_page_names(
    old: Site, new: Site, tmp_path: Path
) -> None:
    """Of a VM, its guest and its host: the replay made up what other beliefs ask for. Of the VMs of 8.0,
    hardware 21, only a part was recorded.
    """
    estate, folder = FOLDER / "vsphere/vcenter-8.0-estate.xml", tmp_path / "estate"
    folder.mkdir()
    with replaying(estate, folder, version="8.0.2", build="0", api="8.0.2.0") as there:
        hardware_21 = _judged(_site(folder, there.port, there.ca_file, "vm114"), ("vm",))
    judged = (_judged(old), _judged(new), hardware_21)

    assert [differing for _, differing in judged if differing] == []
    assert set().union(*(held for held, _ in judged)) == {
        id_ for id_ in SEEN_FOR_REAL if not id_.startswith("time.")
    }


LEARNED = sorted((Path(__file__).parents[1] / "data" / "recorded").glob("*.yml"))


@pytest.mark.parametrize("recording", LEARNED, ids=lambda path: path.stem)
def test_what_doctor_recorded_supports_the_beliefs_too(recording: Path, tmp_path: Path) -> None:
    """No belief that it can answer differs; a real server's answers support only what the page names."""
    document, held, differing = _replayed(recording, tmp_path)

    assert differing == {}
    assert {"vm.methods_disabled", "host.numa_options", "server.counters", "server.privileges_exist"} <= held
    assert document.get("simulated") or held <= SEEN_FOR_REAL


def test_a_recording_supports_what_its_server_did(old: Site, tmp_path: Path) -> None:
    """What replaces names takes nothing away that a belief about vCenter 6.7 needs."""
    ran = old.run("doctor", "sql16", "--record", tmp_path / "contact.yml")
    assert ran.code == 0, ran.text
    _, held, differing = _replayed(tmp_path / "contact.yml", tmp_path)

    assert ran.code == 0, ran.text
    assert (held, differing) == _judged(old)
    assert "vm98" not in (tmp_path / "contact.yml").read_text("utf-8")


def _replayed(recording: Path, folder: Path) -> tuple[dict[str, Any], set[str], dict[str, str]]:
    """A recording of doctor's, and how a vCenter that answers with it is judged."""
    document = YAML(typ="safe").load(recording.read_text("utf-8"))
    there = document["vsphere"]
    objects = folder / "objects.xml"
    objects.write_text(there["objects"], "utf-8")
    versions = {name: there[name] for name in ("version", "build", "api")}
    with replaying(objects, folder, **versions) as replay:
        return document, *_judged(_site(folder, replay.port, replay.ca_file, there["vm"]))


ROOMS = ("vm", "word", "guest", "host", "cluster")


def _judged(site: Site, rooms: tuple[str, ...] = ROOMS) -> tuple[set[str], dict[str, str]]:
    """The beliefs on VM, guest and host that are held, and what was seen of those that differ."""
    target = Inventory(site.inventory).targets(["sql16"])["sql16"]
    found = ask_vcenter(target, Inventory(site.inventory), consent=_refuse, read_only=True).beliefs
    ours = ("server.counters", "server.privileges_exist")
    found = tuple(one for one in found if one.id.partition(".")[0] in rooms or one.id in ours)
    held = {one.id for one in found if one.verdict is Verdict.HELD}
    return held, {one.id: one.seen for one in found if one.verdict is Verdict.DIFFERS}


def _refuse(vm: VmFacts, _: str | None) -> None:
    raise AssertionError(f"{vm.name} is not to be changed")


def test_doctor_reads_vm_host_and_surroundings_of_67(old: Site) -> None:
    """Only SQL Server, which nobody recorded, fails."""
    ran = old.run("doctor")
    failed = [line.split()[1] for line in ran.text.splitlines() if line.startswith("FAIL")]

    assert (ran.code, failed) == (4, ["SQL"])
    assert "esx18.example.com, ESXi 6.7.0 build 8169922, 2 NUMA nodes of 8 cores" in ran.text


def test_a_snapshot_of_67_keeps_the_estimate(old: Site) -> None:
    """Two nodes with half of the host's memory each, whatever their ranges are; the mark is in the file."""
    file = old.folder / "estate.json"
    ran = old.run("inventory", "save", file)
    (cluster,) = json.loads(file.read_text("utf-8"))["estates"][0]["clusters"]
    (host,) = cluster["hosts"]

    assert ran.code == 0
    assert host["node_memory_estimated"] is True
    assert [node["memory_mb"] for node in host["numa_nodes"]] == [65513, 65513]


def test_the_rules_judge_the_vm_of_67(old: Site) -> None:
    """Nothing blocks: no rule takes the length of a range for a node's memory."""
    ran = old.run("check", "--all", "--format", "json")
    document = json.loads(ran.out)

    assert ran.code == 0
    assert {found["rule"] for found in document["findings"]} == {"M01", "T07", "T11", "T26"}


def test_a_study_on_67_can_be_planned(old: Site) -> None:
    """25 disabled methods of a healthy VM do not block it."""
    ran = old.run("plan", old.folder / "study.yml")

    assert ran.code == 0


def test_doctor_and_plan_read_803(new: Site) -> None:
    """Nested ESXi does not block, and the VM's manager is named."""
    doctor = new.run("doctor")
    plan = new.run("plan", new.folder / "study.yml")
    failed = [line.split()[1] for line in doctor.text.splitlines() if line.startswith("FAIL")]

    assert (doctor.code, failed) == (4, ["SQL"])
    assert "com.vmware.vim.eam" in doctor.text
    assert plan.code == 0


@pytest.mark.parametrize("command", [("check", "--all"), ("inventory", "save", "estate.json")])
def test_vspheres_own_vms_of_803_are_not_judged(
    new: Site, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has two VMs, both vCLS: there is no VM to check, and the reason is said."""
    monkeypatch.chdir(new.folder)
    ran = new.run(*command)

    assert ran.code == 4


@pytest.mark.parametrize("new", ["vCLS-vm01"], indirect=True)
def test_a_vm_whose_host_is_not_shown_is_named_with_the_host(new: Site) -> None:
    """The recording has the VM, and nothing of its host."""
    ran = new.run("plan", new.folder / "study.yml")

    assert ran.code == 4
