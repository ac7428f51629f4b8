"""Restoring a machine with a real shell: the study's kernel settings and files, and nothing else.

The kernel's files are in a folder here, so that the testing machine's settings stay unchanged;
`test_killed.py` uses a kernel of its own.
"""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from tests.store.build import Leased, claim
from tests.support.stores import new_store
from vnuma.domain.study.order import PlannedCell
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.linux import linux_facts
from vnuma.engine.access import secrets
from vnuma.engine.access.context import VmContext, vm_of_run
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.secrets import Secret
from vnuma.engine.access.target import UNSHAPED, SqlTarget, Target
from vnuma.engine.actions import steps
from vnuma.engine.audit.log import PROGRAM, Journal, audit_lines
from vnuma.engine.cell.boot import ready_cell
from vnuma.engine.cell.dataset import LEFT_BEHIND, databases_left
from vnuma.engine.cell.measure_cell import CellSystem
from vnuma.engine.instance import sql_identity
from vnuma.engine.instance.sql_identity import take_over_unshaped
from vnuma.engine.restore import restore
from vnuma.engine.restore import restore_leftovers as leftovers
from vnuma.engine.restore.restore import (
    Leftover,
    baseline_values,
    context_in_store,
    differences,
    find_baseline,
    has_guest,
    restore_guest,
    restore_target,
)
from vnuma.engine.restore.restore_leftovers import (
    RestoreRequest,
    restore_after_death,
    restore_leftovers,
    show_leftovers,
)
from vnuma.engine.restore.restore_vm import Choice, Restored
from vnuma.engine.run.oversight import SupervisedRun
from vnuma.engine.run.start import reopen
from vnuma.engine.run.supervise import restore_vms
from vnuma.errors import InputError, LeaseLost, NotAtBaseline, RestoreConflict, StoreError, WrongServer
from vnuma.store import cells, facts, leases, runs
from vnuma.store.open import Store
from vnuma.store.rows import Claim, RestoreOutcome
from vnuma.workloads.command.settings import Command
from vnuma.workloads.interface import workload_named
from vnuma.workloads.page_cache import scripts as scripts
from vnuma.workloads.shell import BOOT, Output, Shell, linux_question

STUDY = """
name: held
vm: box
reference: local
arms: [{{topology: keep, name: local}}, {{topology: keep, name: far, workload: {{memory_node: 1}}}}]
design: {{blocks: 1, sentinel: false}}
workload: {{name: page_cache, sizes: [1], folder: {folder}, transparent_hugepages: never}}
"""


@dataclass
class LocalShell:
    """This machine's own shell; `broken` makes every script fail that has this text."""

    broken: str = "no such text"
    scripts: list[str] = field(default_factory=list)

    def __call__(self, script: str, within_s: float = 60) -> Output:
        """Run it."""
        self.scripts.append(script)
        if self.broken in script:
            return Output(1, "", "cannot write")
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
        return Output(done.returncode, done.stdout, done.stderr)


def reached(shell: Shell) -> tuple[object, Path]:
    """Which machine a shell outside a play reaches, and by which inventory."""
    assert isinstance(shell, partial)
    name, inventory = shell.args
    return name, inventory.path


@dataclass(frozen=True)
class Machine:
    """A machine under study, with the kernel's files in a folder."""

    store: Store
    study: Study
    leased: Leased
    kernel: Path
    folder: Path

    def back(self, home: Path, choice: Choice = "refuse", shell: LocalShell | None = None) -> Restored:
        """Put it back."""
        return restore_target(self.context(home, shell or LocalShell()), choice)

    def context(self, home: Path, shell: LocalShell) -> VmContext:
        """The run and the machine, as the store has it now."""
        with self.store.read() as connection:
            now = leases.get_vm(connection, self.leased.vm.id)
        box = Target(name=now.name)
        return VmContext(self.store, self.leased.run, self.study, now, box, home=home, task_shell=shell)

    def setting(self, name: str) -> str:
        """What the kernel's file says."""
        return (self.kernel / name).read_text(encoding="utf-8").strip()

    def write(self, name: str, value: str) -> None:
        """Set it, as the study or somebody does."""
        (self.kernel / name).write_text(f"{value}\n", encoding="utf-8")

    @property
    def outcome(self) -> tuple[RestoreOutcome | None, bool]:
        """What the store says of it, and whether the run still holds it."""
        with self.store.read() as connection:
            row = leases.get_vm(connection, self.leased.vm.id)
            lease = leases.get_lease(connection, row.vm_key)
        return row.restore_outcome, lease is not None


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Taken over while huge pages were on `madvise` and NUMA balancing on."""
    folder = tmp_path / "kernel"
    folder.mkdir()
    for name, value in (("numa_balancing", "1"), ("transparent_hugepages", "madvise")):
        (folder / name).write_text(f"{value}\n", encoding="utf-8")
        monkeypatch.setitem(sql_identity.WHERE, name, str(folder / name))
    monkeypatch.setattr(scripts, "BALLAST", str(tmp_path / "shm-ballast"))
    text = STUDY.format(folder=tmp_path)
    store, box = new_store(tmp_path / "store.db"), linux_facts(LocalShell()(linux_question("/")).stdout)
    with store.write() as connection:
        run = runs.create_run(connection, runs.save_study(connection, "held", text), seed=1)
        key = f"{UNSHAPED}{box.identity}"
        vm = leases.add_vm(connection, run.id, vm_key=key, name="box", path="box", esxi_host="box")
        seen = {"numa_balancing": "1", "transparent_hugepages": "madvise"}
        facts.add_vm_facts(connection, vm.id, "machine", seen)
    study = parse_study(text, "study")
    token = take_over_unshaped(VmContext(store, run, study, vm, Target(name="box")))
    return Machine(store, study, Leased(run, vm, token), folder, tmp_path)


def test_what_the_study_held_goes_back_and_reads_back(machine: Machine, tmp_path: Path) -> None:
    """A pass was killed: its setting is as before, the journal tells it, the lease is given up."""
    machine.write("transparent_hugepages", "never")

    done = machine.back(tmp_path)

    assert machine.setting("transparent_hugepages") == "madvise"
    assert done.words == "box: 1 of 1 settings read back equal, files removed"
    assert machine.outcome == (RestoreOutcome.RESTORED, False)
    _, line = audit_lines(machine.store, machine.leased.run.name)
    assert line.change == [{"setting": "linux.transparent_hugepages", "before": "never", "after": "madvise"}]


@dataclass
class Overtaken(LocalShell):
    """Another process takes the machine over when the files are removed."""

    then: Callable[[], object] = lambda: None

    def __call__(self, script: str, within_s: float = 60) -> Output:
        """Run it."""
        done = super().__call__(script, within_s)
        if "rmdir" in script:
            self.then()
        return done


def test_a_restore_that_loses_its_lease_writes_nothing_more(machine: Machine, tmp_path: Path) -> None:
    """Removing may take hours: each script after it is fenced."""
    machine.write("transparent_hugepages", "never")

    def take() -> None:
        with machine.store.write() as connection:
            leases.raise_token(connection, machine.leased.vm.vm_key, machine.leased.run.id, "bob@site")

    with pytest.raises(LeaseLost):
        machine.back(tmp_path, shell=Overtaken(then=take))

    assert machine.setting("transparent_hugepages") == "never"


def test_a_client_is_reached_by_the_inventory_that_a_restore_is_given(
    machine: Machine, tmp_path: Path
) -> None:
    """As its VM is."""
    new, leased = tmp_path / "new.yml", machine.leased
    study = parse_study(
        "{name: held, vm: box, reference: a, arms: [{topology: keep, name: a}], "
        "design: {blocks: 1, a_a: false, sentinel: false}, workload: {name: command, run: bench, "
        "client: driver, figure: {name: tps, unit: 1/s, better: higher, regex: '(x)'}}}",
        "study",
    )
    context = context_in_store(machine.store, leased.run, leased.vm, Inventory(new), Target(name="box"))

    assert reached(replace(context, study=study).workload_shell()) == ("driver", new)


def test_another_machine_under_the_name_is_not_written_to(machine: Machine, tmp_path: Path) -> None:
    """Ansible's connection reaches one that the run never saw: no cell and no restore works there."""
    machine.write("transparent_hugepages", "never")
    own = tmp_path / "vnuma-page-cache"
    own.mkdir()
    here, claimed = machine.context(tmp_path, LocalShell()), new_attempt(machine)
    there = replace(here, token=machine.leased.token, vm=replace(here.vm, vm_key="linux/another"))

    assert ready_cell(replace(there, vm=here.vm), claimed) is None
    assert CellSystem(replace(there, vm=here.vm), claimed).boot == Path(BOOT).read_text().strip()
    with pytest.raises(WrongServer):
        ready_cell(there, claimed)
    with machine.store.write() as connection:
        token = leases.take_lease(connection, "linux/another", machine.leased.run.id, "ann@site")
    with pytest.raises(WrongServer):
        restore_guest(replace(there, token=token), "refuse", lambda _: None, Restored("box"))

    assert own.exists()
    assert machine.setting("transparent_hugepages") == "never"


def new_attempt(machine: Machine) -> Claim:
    """A claimed cell of the machine."""
    with machine.store.write() as connection:
        cells.add_cells(connection, machine.leased.vm.id, [PlannedCell(0, 1, "local", "local")])
    return claim(machine.store, machine.leased)


def test_a_guest_that_ended_with_its_lab_is_not_looked_for(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its VM's part says so, and the target is settled without the guest's shell."""
    shell = LocalShell()
    monkeypatch.setattr(restore, "Restored", partial(Restored, lab_ended=True))

    machine.back(tmp_path, shell=shell)

    assert shell.scripts == []
    assert machine.outcome == (RestoreOutcome.UNCHANGED, False)


def test_what_the_study_does_not_hold_is_not_changed(machine: Machine, tmp_path: Path) -> None:
    """Somebody switched NUMA balancing off meanwhile: the study never touched it, nor does restoring."""
    machine.write("numa_balancing", "0")

    machine.back(tmp_path)

    assert machine.setting("numa_balancing") == "0"


def test_differences_say_which_change_is_the_studys(machine: Machine, tmp_path: Path) -> None:
    """What the study holds is ours with its value, and somebody else's with another; all else is as well."""
    machine.write("transparent_hugepages", "never")
    machine.write("numa_balancing", "0")

    assert [
        (item.setting, item.baseline, item.now, item.by)
        for item in differences(machine.context(tmp_path, LocalShell()))
    ] == [
        ("linux.numa_balancing", "1", "0", "somebody else"),
        ("linux.transparent_hugepages", "madvise", "never", "us"),
    ]
    assert baseline_values(find_baseline(machine.store, "box", None)[1])[1] == {
        "linux.numa_balancing": "1",
        "linux.transparent_hugepages": "madvise",
    }


def test_files_ballast_and_what_a_killed_reader_left_are_removed(machine: Machine, tmp_path: Path) -> None:
    """Nothing of ours stays: neither the file, nor what used memory up, nor a reader's folder."""
    shell = LocalShell()
    assert shell(scripts.make_file(str(tmp_path), 1)).status == 0
    own, ballast = tmp_path / "vnuma-page-cache", tmp_path / "shm-ballast.Ab12Cd"
    for folder in (ballast, own / "read.xYz123"):
        folder.mkdir()
        (folder / "left").write_bytes(b"left")
    (own / "busy").write_text("4194305\n", encoding="utf-8")  # no process has a number beyond pid_max

    machine.back(tmp_path)

    assert not own.exists()
    assert not ballast.exists()


@pytest.mark.parametrize(
    ("choice", "value", "outcome"),
    [("theirs", "always", RestoreOutcome.THEIRS), ("baseline", "madvise", RestoreOutcome.RESTORED)],
)
def test_a_foreign_change_is_refused_until_a_person_decides(
    machine: Machine, tmp_path: Path, choice: Choice, value: str, outcome: RestoreOutcome
) -> None:
    """A value that is neither the baseline's nor the study's is not overwritten unasked."""
    machine.write("transparent_hugepages", "always")

    with pytest.raises(RestoreConflict):
        machine.back(tmp_path)

    assert machine.setting("transparent_hugepages") == "always"
    assert machine.outcome == (RestoreOutcome.CONFLICT, True)

    machine.back(tmp_path, choice)

    assert machine.setting("transparent_hugepages") == value
    assert machine.outcome == (outcome, False)


def test_the_roles_step_decides_likewise_and_shows_it_in_check_mode(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same refusal, and with a choice the same change that a look before had shown."""
    monkeypatch.setenv("VNUMA_STORE", f"sqlite:///{tmp_path}/store.db")
    machine.write("transparent_hugepages", "always")
    name, box, shell = machine.leased.run.name, Target(name="box"), LocalShell()

    for step in (steps.plan_restore, steps.restore):
        with pytest.raises(RestoreConflict):
            step(name, box, "refuse", "always", shell)
    shown = steps.plan_restore(name, box, "baseline", "always", shell)
    assert machine.setting("transparent_hugepages") == "always"
    done = steps.restore(name, box, "baseline", "always", shell)

    assert machine.setting("transparent_hugepages") == "madvise"
    assert {key: done[key] for key in shown} == shown
    assert shown["changes"] == [
        {"setting": "linux.transparent_hugepages", "before": "always", "after": "madvise"}
    ]


def test_a_vm_without_its_variables_is_not_taken_for_a_machine(machine: Machine) -> None:
    """An inventory that lacks vnuma_vcenter must not send a VM's steps to a host by SSH."""
    run = machine.leased.run
    with machine.store.write() as connection:
        leases.add_vm(
            connection, run.id, vm_key="vc/vm-1", name="sql16", path="/DC/vm/sql16", esxi_host="esx"
        )

    for held in (Target(name="sql16"), _vm_target("box")):
        with pytest.raises(InputError):
            vm_of_run(machine.store, run, held)


def _vm_target(name: str) -> Target:
    login = {"host": "other.example", "user": "u", "password": {"env": "NO_SUCH"}}
    return Target.model_validate({"name": name, "vm": name, "vcenter": login, "sql": login})


def test_a_setting_that_cannot_be_written_keeps_the_lease(machine: Machine, tmp_path: Path) -> None:
    """Putting back that fails is said, and may be repeated."""
    machine.write("transparent_hugepages", "never")

    with pytest.raises(NotAtBaseline):
        machine.back(tmp_path, shell=LocalShell("echo madvise >"))

    assert machine.outcome == (RestoreOutcome.FAILED, True)
    assert machine.back(tmp_path).equal == 1


def test_a_reader_that_outlived_its_play_is_waited_for(machine: Machine, tmp_path: Path) -> None:
    """A script whose connection was cut works on: the next one begins when it has ended."""
    own = tmp_path / "vnuma-page-cache"
    own.mkdir(mode=0o700)
    gate = tmp_path / "gate"
    words = f"mkfifo {gate}; echo $$ > {own}/busy; read go < {gate}; : {own}"
    with subprocess.Popen(["/bin/sh", "-c", words]) as old:
        while not (own / "busy").exists() or not (own / "busy").read_text(encoding="utf-8"):
            pass
        waiting = subprocess.Popen(["/bin/sh", "-c", scripts.remove(str(tmp_path), [1])])
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=0.5)
        with gate.open("w", encoding="utf-8") as opened:
            opened.write("go\n")
        assert old.wait() == 0
    assert waiting.wait() == 0
    assert not own.exists()


def no_more_writes(machine: Machine) -> None:
    """From now on the store refuses every change of a lease, as on a full disk."""
    with closing(sqlite3.connect(machine.folder / "store.db")) as store:
        store.execute("CREATE TRIGGER full BEFORE UPDATE ON lease BEGIN SELECT RAISE(ABORT, 'full'); END")


def test_a_store_that_cannot_be_written_keeps_no_setting_changed(machine: Machine, tmp_path: Path) -> None:
    """The setting is restored; the error is the store's, and says so. A foreign change takes precedence."""
    machine.write("transparent_hugepages", "never")
    no_more_writes(machine)

    with pytest.raises(StoreError):
        machine.back(tmp_path)

    assert machine.setting("transparent_hugepages") == "madvise"
    machine.write("transparent_hugepages", "always")
    with pytest.raises(RestoreConflict):
        machine.back(tmp_path)


def test_a_machine_whose_store_is_lost_is_reported_by_its_audit_log(machine: Machine, tmp_path: Path) -> None:
    """Nobody knows its shell without the store: the values before are named, and exit code 7."""
    journal = Journal(machine.store, "linux/box", "box", run_name="gone.1")
    with journal.change("hold", [Edit("linux.numa_balancing", "1", "0")]):
        machine.write("numa_balancing", "0")
    log = tmp_path / "store.audit.jsonl"

    wanted = RestoreRequest(inventory=Inventory(tmp_path), log=log)

    (shown,) = show_leftovers(machine.store, wanted)
    report = restore_leftovers(machine.store, wanted)

    (problem,) = report.problems
    assert isinstance(problem, NotAtBaseline)
    assert shown == str(problem)
    assert "linux.numa_balancing 1" in problem.what


def test_a_store_that_fails_after_a_restore_does_not_hide_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report says that the VM is restored, and the store's error decides the exit code."""
    lost = StoreError("The store is gone.")

    def unreadable(*_: object) -> bool:
        raise lost

    def restored(context: VmContext, *_: object) -> Restored:
        return Restored(context.vm.name, 1, 1)

    monkeypatch.setattr(leftovers, "is_expected", unreadable)
    monkeypatch.setattr(leftovers, "restore_dead", restored)

    report = restore_leftovers(machine.store, RestoreRequest())

    assert report.done == [Restored("box", 1, 1).words]
    assert (report.problems, report.kept) == ([lost], [])


def test_a_run_resumed_by_another_inventory_is_restored_by_it(machine: Machine, tmp_path: Path) -> None:
    """What was measured by the new one must not be looked for by one that may be gone."""
    new = tmp_path / "new.yml"

    run = reopen(machine.store, machine.leased.run.name, new)[0]
    context = VmContext(machine.store, run, machine.study, machine.leased.vm, Target(name="box"))

    assert has_guest(context)
    assert reached(context.shell()) == ("box", new)


@pytest.mark.parametrize("after_death", [False, True], ids=["its end", "its death"])
def test_a_machine_is_restored_by_the_inventory_that_is_used_now(
    machine: Machine, tmp_path: Path, *, after_death: bool
) -> None:
    """A site's inventory is another one than the controller's, which the run names."""
    new, targets = tmp_path / "new.yml", {"box": Target(name="box")}
    work = SupervisedRun(machine.store, "", machine.leased.run, machine.study, targets, Inventory(new))

    if after_death:
        with pytest.raises(NotAtBaseline, match=r"new\.yml"):
            restore_after_death(machine.store, targets, Inventory(new))
    else:
        _, (problem,) = restore_vms(work)
        assert "new.yml" in str(problem)


def test_a_vm_left_by_a_dead_run_is_not_restored_as_the_machine_of_its_name(machine: Machine) -> None:
    """An inventory that has sql16 as a Linux machine by now: refused before its lease is touched."""
    with machine.store.write() as connection:
        vm = leases.add_vm(
            connection, machine.leased.run.id, vm_key="vc/1", name="sql16", path="/sql16", esxi_host="esx"
        )

    context = VmContext(machine.store, machine.leased.run, machine.study, vm, Target(name="sql16"))
    with pytest.raises(InputError):
        restore_target(context)


def test_a_database_that_was_dropped_after_all_is_not_left(machine: Machine) -> None:
    """The last try counts: a refusal, then the drop by a resumed run."""
    vm = machine.leased.vm
    with machine.store.write() as connection:
        facts.add_vm_facts(connection, vm.id, LEFT_BEHIND, {"dataset": "database d was not dropped: refused"})
        before = databases_left(connection, vm.run_id)
        facts.add_vm_facts(connection, vm.id, "dataset_dropped", {"dropped": True})
        after = databases_left(connection, vm.run_id)

    assert before == {vm.id: "database d was not dropped: refused"}
    assert after == {}


def test_a_machine_that_the_run_never_came_to_is_left_as_it_was(machine: Machine, tmp_path: Path) -> None:
    """Without a baseline nothing was changed there: no script runs, and none is said to have."""
    run, shell = machine.leased.run, LocalShell()
    with machine.store.write() as connection:
        vm = leases.add_vm(connection, run.id, vm_key="linux/b", name="b", path="b", esxi_host="b")
        leases.take_lease(connection, "linux/b", run.id, "ann@site")

    context = replace(machine.context(tmp_path, shell), vm=vm, target=Target(name="b"))
    done = restore_target(context)

    assert shell.scripts == []
    assert "removed" not in done.words


def test_a_note_of_a_workload_shows_which_program_ran_and_no_secret(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore looks for the words at its begin, though a password be one of them."""
    monkeypatch.setattr(secrets, "_seen", set())
    secrets.conceal({"ansible_password": "teardown"})
    figure = {"name": "n", "unit": "1/s", "better": "higher", "regex": "(.)"}
    settings = Command.model_validate(
        {
            "name": "command",
            "figure": figure,
            "run": ["true"],
            "study_teardown": ["true teardown", ["true", "a"]],
        }
    )

    context = replace(machine.context(tmp_path, LocalShell()), token=machine.leased.token)

    workload_named("command").remove(Leftover(context, ""), settings)

    assert [line.detail for line in audit_lines(machine.store, None) if line.action == PROGRAM] == [
        "study_teardown: true ***",
        "study_teardown ended with exit code 0",
        "study_teardown: true a",
        "study_teardown ended with exit code 0",
    ]


def test_a_guest_is_restored_without_the_secrets_of_what_is_not_reached(
    machine: Machine, tmp_path: Path
) -> None:
    """As on another day in another shell: nothing here needs its SQL Server's password."""
    machine.write("transparent_hugepages", "never")
    sql = SqlTarget(host="sql16", user="sa", password=Secret(env="NOWHERE_SET"))
    context = machine.context(tmp_path, LocalShell())

    done = restore_target(replace(context, target=Target(name="box", sql=sql)))

    assert (done.settings, done.equal) == (1, 1)
    assert machine.setting("transparent_hugepages") != "never"
