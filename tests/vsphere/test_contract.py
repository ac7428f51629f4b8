"""What vnuma believes of vSphere: the lab plays it, and any vCenter can be asked through a VM."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyVmomi import vim

from tests.support.cli import on_terminal, status, vnuma, vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from tests.vsphere.support import LabFactory, Login, vcenter_of
from vnuma.cli.contract import tell
from vnuma.contract import beliefs_off, beliefs_on, suite
from vnuma.contract.suite import Judged, Verdict, beliefs
from vnuma.contract.vcenter import NOTHING, Clone, ask_vcenter
from vnuma.domain.vm.change import change_back
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.places import store_url
from vnuma.errors import InputError, Interrupted, NotAtBaseline, PreflightBlocked, VmHeld
from vnuma.store import attempts, runs
from vnuma.store.open import open_store
from vnuma.store.rows import Outcome, Run, RunState
from vnuma.vsphere import tags
from vnuma.vsphere.apply import submit
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.run_mark import read_mark, write_mark

QUICK = {"tools_seconds": 0.05, "sql_seconds": 0.05, "shutdown_seconds": 0.05, "task_seconds": 0.01}
ESXI8 = {"esxi": {"version": "8.0.3"}}
HARDWARE_20 = {"vm.automatic_cores", "vm.numa_info", "change.automatic_cores", "change.cores_per_numa_node"}
"""What came with ESXi 8.0."""


CHANGING = (*beliefs("off"), *beliefs("on"))
ALL = (*beliefs("read"), *CHANGING)


def seen_of(found: Iterable[Judged], verdict: Verdict) -> dict[str, str]:
    """The beliefs of that verdict, with what was seen."""
    return {one.id: one.seen for one in found if one.verdict is verdict}


def now(lab: LabHandle, name: str = "sql16") -> VmFacts:
    """A VM as it is."""
    with connect(vcenter_of(lab)) as session:
        return read_vm(session, find_vm(session, name))


def unchanged(before: VmFacts, after: VmFacts) -> bool:
    """Whether a VM is unchanged, including its power and a run's mark."""
    back = change_back(after.settings, before.settings)
    return (bool(back), after.power, after.lease) == (False, before.power, before.lease)


def contract_run() -> Run:
    """The one run in the store."""
    with open_store(store_url()).read() as connection:
        (run,) = runs.list_runs(connection)
    return run


def only(monkeypatch: pytest.MonkeyPatch, *ids: str) -> None:
    """Of the beliefs that need a change ask these alone."""

    def select(_: object, items: list[pytest.Item]) -> None:
        for item in items:
            if item.path.stem != "beliefs_read" and suite._id(item) not in ids:
                item.add_marker(pytest.mark.skip("not in this test"))

    monkeypatch.setattr(suite._BeliefRun, "pytest_collection_modifyitems", select, raising=False)


def agree(vm: VmFacts, scenario: str | None) -> None:
    """Consent to whatever is changed: it is the lab's."""
    assert (vm.name, bool(scenario)) == ("sql16", True)


def ask(folder: Path, lab: LabHandle, **options: Any) -> Any:
    """What the lab's vCenter answers through its first VM."""
    inventory = write_inventory(folder, lab)
    target = Inventory(inventory).targets(["sql16"])["sql16"]
    return ask_vcenter(target, Inventory(inventory), consent=agree, **options)


@pytest.mark.parametrize("power", ["on", pytest.param("off", marks=pytest.mark.long)])
def test_the_lab_plays_each_belief_and_the_clone_is_restored(
    lab: LabFactory, tmp_path: Path, power: str
) -> None:
    """On ESXi 8 every assumption about this VM is held; afterwards it is restored, including its power."""
    running = lab(ESXI8, boot=QUICK, vms=[{"name": "sql16", "power": power}])
    before = now(running)

    answers = ask(tmp_path, running)

    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {}
    concerns_others = {"cluster.drs", "guest.none_while_off"}
    if power == "off":
        concerns_others |= {"guest.running"}
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

    answers = ask_vcenter(
        Inventory(path).targets(["sql16"])["sql16"], Inventory(path), consent=refuse, **options
    )

    unasked = seen_of(answers.beliefs, Verdict.NOT_EVALUABLE)
    assert {one.id for one in CHANGING} <= set(unasked)
    assert all(unasked[one.id] for one in beliefs("off"))
    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {}
    assert now(shared_lab).change_version == version


def refuse(vm: VmFacts, _: str | None) -> None:
    """Refuse every change."""
    raise AssertionError(f"{vm.name} is not to be changed")


def rename(lab: LabHandle, name: str, new: str) -> None:
    """Give a VM another name."""
    with connect(vcenter_of(lab)) as session:
        submit(session, find_vm(session, name), vim.vm.ConfigSpec(name=new), fence=lambda: None)


def untag(lab: LabHandle, moid: str) -> None:
    """Take the lab's one tag off a VM."""
    with tags._Rest(vcenter_of(lab)) as rest:
        (tag,) = rest.get(f"{tags._TAGGING}/tag")
        asked = f"{tags._TAGGING}/tag-association/id:{quote(tag)}?~action=detach"
        rest.post(asked, {"object_id": {"id": moid, "type": "VirtualMachine"}})


@pytest.mark.parametrize("meanwhile", ["renamed", "untagged"])
def test_only_the_vm_that_was_consented_to_is_changed(
    lab: LabFactory, tmp_path: Path, meanwhile: str
) -> None:
    """Hours may pass before the answer: another VM of that name, or one that may no longer be changed, is
    refused before it is marked.
    """
    tagged = [{"category": "env", "name": "test", "vms": ["sql16"]}]
    running = lab(boot=QUICK, vms=[{"name": "sql16"}, {"name": "other"}], tags=tagged)
    path = write_inventory(tmp_path, running)
    target = Inventory(path).targets(["sql16"])["sql16"]
    target = target.model_copy(update={"require_tag": "env:test"})

    def consent(vm: VmFacts, scenario: str | None) -> None:
        agree(vm, scenario)
        if meanwhile == "renamed":
            rename(running, "sql16", "moved")
            rename(running, "other", "sql16")
        else:
            untag(running, vm.moid)

    answers = ask_vcenter(target, Inventory(path), consent=consent)

    refusal = InputError if meanwhile == "renamed" else PreflightBlocked
    assert isinstance(answers.cut_short, refusal)
    assert answers.leftover == NOTHING
    assert (now(running).power, now(running).lease) == (Power.ON, None)
    with open_store(store_url()).read() as connection:
        assert not runs.list_runs(connection)


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

    answers = ask(tmp_path, running)

    assert isinstance(answers.cut_short, VmHeld)
    assert answers.leftover == NOTHING
    assert now(running).change_version == version


def test_ctrl_c_puts_the_clone_back(lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to stop midway, it changes nothing more, and the VM is restored."""
    running = lab(boot=QUICK)
    before = now(running)
    belief = beliefs_off.test_change_affinity

    @wraps(belief)
    def interrupted(asked: Clone) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        belief(asked)

    monkeypatch.setattr(beliefs_off, "test_change_affinity", interrupted)

    answers = ask(tmp_path, running)

    assert isinstance(answers.cut_short, Interrupted)
    assert seen_of(answers.beliefs, Verdict.HELD).keys() >= {"word.powerState", "version.stale_is_refused"}
    assert len(answers.beliefs) == len(ALL)
    assert unchanged(before, now(running))
    assert contract_run().state is RunState.STOPPED


def test_a_clone_that_cannot_be_restored_decides_the_exit_code(
    lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After Ctrl-C too: the results are written, and then that the VM is not at its baseline."""
    running = lab(boot=QUICK)
    belief = beliefs_off.test_version_stale_is_refused

    @wraps(belief)
    def then_stuck(asked: Clone) -> None:
        belief(asked)
        running.fault("reconfigure_refused", vm="sql16", times=0)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(beliefs_off, "test_version_stale_is_refused", then_stuck)

    answers = ask(tmp_path, running)
    with pytest.raises(NotAtBaseline) as caught:
        tell(answers, tmp_path / "contract.json")

    assert caught.value.exit_code == 7
    written = json.loads((tmp_path / "contract.json").read_text(encoding="utf-8"))
    assert written["beliefs"]["version.stale_is_refused"]["verdict"] == "held"
    assert contract_run().state is RunState.FAILED


@pytest.mark.long
def test_a_host_that_still_cleans_up_is_asked_again(
    lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """InvalidState, as just after a shutdown, does not end the asking: the power-on is tried again."""
    only(monkeypatch, "key.is_stored", "on.key_is_kept")
    struck = {"kind": "invalid_state", "vm": "sql16", "boot": 2, "method": "PowerOnVM_Task"}

    answers = ask(tmp_path, lab(boot=QUICK, faults=[struck]))

    assert answers.cut_short is None
    assert {"on.key_is_kept"} <= seen_of(answers.beliefs, Verdict.HELD).keys()


@pytest.mark.long
def test_a_change_that_is_refused_differs(
    lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is believed to be made, the fault is what was seen."""
    only(monkeypatch, "hot.shares")
    running = lab(boot=QUICK)
    belief = beliefs_on.test_hot_shares

    @wraps(belief)
    def refused(asked: Clone) -> None:
        running.fault("reconfigure_refused", vm="sql16")
        belief(asked)

    monkeypatch.setattr(beliefs_on, "test_hot_shares", refused)

    answers = ask(tmp_path, running)

    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {"hot.shares": "SystemError instead of accepted"}


def test_its_run_is_none_that_measures(
    lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cell is not valid; `latest` and the list pass it by; it is shown by its name, and not resumed."""
    only(monkeypatch)
    ask(tmp_path, lab(boot=QUICK))

    run = contract_run()

    assert run.state is RunState.FINISHED
    with open_store(store_url()).read() as connection:
        (attempt,) = attempts.attempts_of_run(connection, run.id)
        with pytest.raises(InputError):
            runs.get_run(connection, "latest")
    assert (attempt.outcome, attempt.reason) == (Outcome.INVALID, "not_measured")
    assert status()["runs"] == []
    assert vnuma("run", "--resume", run.name).code == 3


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
    target = Inventory(inventory).targets(["sql16"])["sql16"]

    answers = ask_vcenter(target, Inventory(inventory), consent=refuse, read_only=True)

    assert len(answers.beliefs) == len(ALL)
    assert seen_of(answers.beliefs, Verdict.DIFFERS) == {}
    assert answers.count(Verdict.HELD) > len(beliefs("read")) / 2


def test_the_command_writes_a_file_without_names(tmp_path: Path, shared_lab: LabHandle) -> None:
    """The file has what was seen, but no address, name or account."""
    inventory, file = write_inventory(tmp_path, shared_lab), tmp_path / "contract.json"

    ran = vnuma("contract", "--vcenter", "sql16", "-i", inventory, "--read-only", "--output", file)

    assert ran.code == 0, ran.text
    text = file.read_text(encoding="utf-8")
    assert json.loads(text)["simulated"]
    assert set(json.loads(text)["beliefs"]) == {one.id for one in ALL}
    names = ("sql16", shared_lab.vcenter.host, str(shared_lab.vcenter.port), shared_lab.vcenter.user)
    assert [name for name in names if name in text] == []


@pytest.mark.parametrize("terminal", [True, False], ids=["a no", "nobody to ask"])
def test_a_clone_is_changed_only_with_a_yes(shared_lab: LabHandle, tmp_path: Path, *, terminal: bool) -> None:
    """On a terminal it says what will be done and asks; elsewhere it names the option for scripts."""
    inventory, before = write_inventory(tmp_path, shared_lab), now(shared_lab)
    command = ("contract", "--vcenter", "sql16", "-i", inventory)

    if terminal:
        said = "\n".join(on_terminal(100, *command, typed="n\n"))
        parts = ["SIMULATED", "sql16", "shuts the guest down", "restores", str(inventory), "Start?"]
    else:
        ran = vnuma(*command)
        said, parts = ran.err, ["sql16", "--yes", "--read-only"]
        assert (ran.code, ran.out) == (2, "")

    assert [part for part in parts if part not in said] == []
    assert now(shared_lab) == before
    with open_store(store_url()).read() as connection:
        assert not runs.list_runs(connection)


def test_one_server_is_asked_at_a_time() -> None:
    """--sql with --vcenter, or --read-only without it, is a mistake of the command line."""
    assert vnuma("contract", "--sql", "sql16", "--yes").code == 2
    assert vnuma("contract", "--vcenter", "sql16", "--sql", "sql16").code == 2
    assert vnuma("contract", "--sql", "sql16", "--read-only").code == 2


def test_without_pytest_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked then; the fix is pip's command."""
    monkeypatch.setattr("vnuma.errors.find_spec", lambda _: None)

    ran = vnuma_here("contract")

    assert (ran.code, ran.out) == (4, "")
    assert "-m pip install pytest" in ran.err
