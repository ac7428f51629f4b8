"""What vnuma believes of vSphere: the lab plays it, and any vCenter can be asked through a VM."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.sqlserver.support import server_of
from tests.support.cli import vnuma
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from tests.vsphere.support import LabFactory, Login, vcenter_of
from tools.lab_learn import learn
from vnuma.domain.contract.belief import SCHEMA, Judged, Verdict
from vnuma.domain.vm.change import change_back
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.inventory import named_targets
from vnuma.engine.contract.ask_vcenter import judge_vcenter
from vnuma.errors import Interrupted, VmHeld
from vnuma.sqlserver.contract.judge import judge
from vnuma.vsphere.connect import connect
from vnuma.vsphere.contract.asked import READING, WHILE_OFF, WHILE_ON, ChangedVm
from vnuma.vsphere.lease_mark import read_mark, write_mark
from vnuma.vsphere.read import find_vm, read_vm

QUICK = {"tools_seconds": 0.05, "sql_seconds": 0.05, "shutdown_seconds": 0.05, "task_seconds": 0.01}
ESXI8 = {"esxi": {"version": "8.0.3"}}
HARDWARE_20 = {"vm.automatic_cores", "vm.numa_info", "change.automatic_cores", "change.cores_per_numa_node"}
"""What came with ESXi 8.0."""


def seen_of(found: Iterable[Judged], verdict: Verdict) -> dict[str, str]:
    """The beliefs of that verdict, with what was seen."""
    return {one.id: one.seen for one in found if one.verdict is verdict}


def now(lab: LabHandle, name: str = "sql16") -> VmFacts:
    """A VM as it is."""
    with connect(vcenter_of(lab)) as session:
        return read_vm(session, find_vm(session, name))


def unchanged(before: VmFacts, after: VmFacts) -> bool:
    """Whether a VM is as it was, its power and the mark of a run with it."""
    back = change_back(after.settings, before.settings)
    return (bool(back), after.power, after.lease) == (False, before.power, before.lease)


def ask(folder: Path, lab: LabHandle, **options: Any) -> Any:
    """What the lab's vCenter answers through its first VM."""
    inventory = write_inventory(folder, lab)
    return judge_vcenter(named_targets(inventory, ["sql16"])["sql16"].in_vcenter(), inventory, **options)


@pytest.mark.parametrize("power", ["on", pytest.param("off", marks=pytest.mark.long)])
def test_the_lab_plays_each_belief_and_the_clone_is_put_back(
    lab: LabFactory, tmp_path: Path, power: str
) -> None:
    """On ESXi 8 every belief that concerns this VM is held; afterwards it is as it was, power and all."""
    running = lab(ESXI8, boot=QUICK, vms=[{"name": "sql16", "power": power}])
    before = now(running)

    answers = ask(tmp_path, running)

    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {}
    concerns_others = {"vm.locked_reservation", "cluster.drs", "guest.none_while_off"}
    if power == "off":
        concerns_others |= {"guest.state", "guest.addresses"}
        concerns_others -= {"guest.none_while_off"}
    assert set(seen_of(answers.beliefs, Verdict.NOT_EVALUABLE)) <= concerns_others
    assert unchanged(before, now(running))


@pytest.mark.long
def test_an_older_release_is_not_asked_what_came_later(lab: LabFactory, tmp_path: Path) -> None:
    """ESXi 6.0 has no automatic topology; all else holds there too."""
    answers = ask(tmp_path, lab(boot=QUICK))

    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {}
    assert set(seen_of(answers.beliefs, Verdict.NOT_EVALUABLE)) >= HARDWARE_20


@pytest.mark.parametrize(
    ("options", "inventory"),
    [({"read_only": True}, {}), ({}, {"vnuma_test_clone": False}), ({}, {"vnuma_require_tag": "a:b"})],
    ids=["read only", "no clone", "tag missing"],
)
def test_a_vm_that_may_not_be_changed_is_only_read(
    shared_lab: LabHandle, tmp_path: Path, options: dict[str, Any], inventory: dict[str, Any]
) -> None:
    """Its changeVersion stays; what needs a change is not evaluable, and says why."""
    path = write_inventory(tmp_path, shared_lab)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["all"]["children"]["vnuma_vms"]["hosts"]["sql16"] |= inventory
    path.write_text(json.dumps(document), encoding="utf-8")
    version = now(shared_lab).change_version

    answers = judge_vcenter(named_targets(path, ["sql16"])["sql16"].in_vcenter(), path, **options)

    unasked = seen_of(answers.beliefs, Verdict.NOT_EVALUABLE)
    assert {one.id for one in (*WHILE_OFF, *WHILE_ON)} <= set(unasked)
    assert all(unasked[one.id] for one in WHILE_OFF)
    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {}
    assert now(shared_lab).change_version == version


def test_a_standalone_host_is_asked_as_such(lab: LabFactory, tmp_path: Path) -> None:
    """An ESXi host without a vCenter has neither instance UUID nor custom attributes."""
    answers = ask(tmp_path, lab({"name": "alone", "standalone": True, "boot": QUICK}), read_only=True)

    assert answers.of["kind"] == "esxi"
    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {}


def test_a_vm_under_study_is_not_taken(lab: LabFactory, login: Login, tmp_path: Path) -> None:
    """Somebody else's mark on it refuses the changing part; nothing is changed."""
    running = lab(boot=QUICK)
    session = login(running)
    ref = find_vm(session, "sql16")
    write_mark(
        session, ref, '{"run": "other.1", "holder": "ann@there"}', read_mark(session, ref).change_version
    )
    version = now(running).change_version

    with pytest.raises(VmHeld, match=r"ann@there"):
        ask(tmp_path, running)

    assert now(running).change_version == version


def test_ctrl_c_puts_the_clone_back(lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to stop in the middle, it changes nothing more, and the VM is as it was."""
    running = lab(boot=QUICK)
    before = now(running)
    belief = WHILE_OFF["change.affinity"]

    def look(asked: ChangedVm) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return belief.look(asked)

    monkeypatch.setitem(WHILE_OFF.by_id, belief.id, replace(belief, look=look))

    with pytest.raises(Interrupted):
        ask(tmp_path, running)

    assert unchanged(before, now(running))


@pytest.mark.parametrize(
    "account",
    [{"privileges": ["System.View", "System.Read"]}, {"sees": ["sql16"]}],
    ids=["reads alone", "sees the VM alone"],
)
def test_an_account_that_may_do_little_gets_an_answer_for_each_belief(
    lab: LabFactory, tmp_path: Path, account: dict[str, Any]
) -> None:
    """What it may not see is not evaluable; nothing is a crash, and nothing differs that does not."""
    running = lab(boot=QUICK, accounts=[{"user": "limited", **account}])
    inventory = write_inventory(tmp_path, running, user="limited")
    target = named_targets(inventory, ["sql16"])["sql16"].in_vcenter()

    answers = judge_vcenter(target, inventory, read_only=True)

    assert len(answers.beliefs) == len(READING) + len(WHILE_OFF) + len(WHILE_ON)
    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {}
    assert answers.count(Verdict.HELD) > len(READING) / 2


def test_recorded_differences_are_played_by_the_lab(lab: LabFactory, tmp_path: Path) -> None:
    """A file of differences makes a scenario; there each of them is seen again, no other, and undone."""
    seen = {
        "error.unknown_column": "4104 instead of 207",
        "view.dm_os_nodes": "without cpu_affinity_mask",
        "refused.odd_memory": "accepted instead of InvalidArgument",
        "refused.negative_limit": "NotSupported instead of InvalidArgument",
        "hot.cores_is_refused": "CpuHotPlugNotSupported instead of InvalidPowerState",
    }
    beliefs = {id_: {"verdict": "differs", "seen": words} for id_, words in seen.items()}
    unplayed = {"clock.runs_forward": {"verdict": "differs", "seen": "False instead of True"}}
    document = {
        "schema": SCHEMA,
        "of": {"kind": "sql_server", "major_version": 15},
        "beliefs": beliefs | unplayed,
    }
    file = tmp_path / "contract.json"
    file.write_text(json.dumps(document), encoding="utf-8")

    scenario = learn(file, tmp_path)

    assert "clock.runs_forward" in scenario.read_text(encoding="utf-8")
    with scenario.open("a", encoding="utf-8") as more:
        more.write(f"boot: {json.dumps(QUICK)}\n")
    running = lab(str(scenario))
    running.wait_for("sql_listening")
    before = now(running)
    of_sql = judge(server_of(running))
    found = seen_of((*of_sql.beliefs, *ask(tmp_path, running).beliefs), Verdict.DIFFERS)
    assert found == seen
    assert unchanged(before, now(running))


def test_a_text_of_a_recording_stays_a_text(tmp_path: Path) -> None:
    """Whatever a file that was sent in has in it, the scenario gets no further field from it."""
    differing = {
        "clock.runs_forward": "False\nlicence: free",
        "view.dm_os_nodes": "without a]\nlicence: free",
    }
    beliefs = {id_: {"verdict": "differs", "seen": seen} for id_, seen in differing.items()}
    of = {"kind": "sql_server", "major_version": 15}
    file = tmp_path / "contract.json"
    file.write_text(json.dumps({"schema": SCHEMA, "of": of, "beliefs": beliefs}), encoding="utf-8")

    scenario = YAML(typ="safe", pure=True).load(learn(file, tmp_path).read_text(encoding="utf-8"))

    assert set(scenario) == {"name", "learned"}


def test_the_command_writes_a_file_without_names(tmp_path: Path, shared_lab: LabHandle) -> None:
    """Verdicts are printed, and the file has what was seen, but no address, name or account."""
    inventory, file = write_inventory(tmp_path, shared_lab), tmp_path / "contract.json"

    ran = vnuma("contract", "--vcenter", inventory, "--vm", "sql16", "--read-only", "--output", file)

    assert ran.code == 0, ran.text
    text = file.read_text(encoding="utf-8")
    assert set(json.loads(text)["beliefs"]) == {one.id for one in (*READING, *WHILE_OFF, *WHILE_ON)}
    names = ("sql16", shared_lab.vcenter.host, str(shared_lab.vcenter.port), shared_lab.vcenter.user)
    assert [name for name in names if name in text] == []


def test_a_vm_is_needed_to_ask_a_vcenter(tmp_path: Path) -> None:
    """--vcenter without --vm is a mistake of the command line."""
    assert vnuma("contract", "--vcenter", tmp_path).code == 2
