"""A store that is lost while VMs are changed: exit code 7, and the audit log as the way back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import Ran, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import change_by_hand, mark_by_hand, settings_now
from vnuma.engine.restore.restore import restore_target
from vnuma.engine.run.supervise import restore_vms
from vnuma.errors import NotAtBaseline


def test_a_vm_that_cannot_be_restored_for_want_of_the_store_is_named(tmp_path: Path, lab: LabFactory) -> None:
    """The store is gone: that the VM may be altered takes precedence over the store's own error."""
    steps = Steps.prepared(tmp_path / "a", lab())
    steps.shape(steps.take())
    context = steps.free
    (steps.home / "vnuma.db").rename(steps.home / "gone.db")

    _, problems = restore_vms(steps.work)
    with pytest.raises(NotAtBaseline, match="sql16 may not be at its baseline"):
        restore_target(context)

    assert [type(problem) for problem in problems] == [NotAtBaseline]
    assert "sql16" in str(problems[0])


def _lost(tmp_path: Path, running: LabHandle) -> Path:
    """The home of a controller that shaped its VM, and whose store somebody then deleted."""
    steps = Steps.prepared(tmp_path / "a", running)
    steps.shape(steps.take())
    for file in steps.home.glob("vnuma.db*"):
        file.unlink()
    return steps.home


def _restore(home: Path, *arguments: str | Path) -> Ran:
    return vnuma_here("restore", "--store", f"sqlite:///{home / 'vnuma.db'}", *arguments)


def _by_audit(home: Path, *arguments: str | Path) -> Ran:
    return _restore(home, "--from-audit", home / "vnuma.audit.jsonl", "-i", home / "hosts.yml", *arguments)


def test_a_deleted_store_is_no_proof_that_every_vm_is_at_its_baseline(
    tmp_path: Path, lab: LabFactory
) -> None:
    """A new, empty store knows nothing: the audit log next to it names the VM, its run and the way back."""
    home = _lost(tmp_path, lab())

    ran = _restore(home)

    assert ran.code == 7, ran.text
    for words in ("sql16", "small.1", "numCoresPerSocket", f"--from-audit {home / 'vnuma.audit.jsonl'}"):
        assert words in ran.err


def test_the_audit_log_restores_what_the_store_no_longer_knows(tmp_path: Path, lab: LabFactory) -> None:
    """Shape, power and mark are as before; shown first without a change, and done only once."""
    running = lab()
    before = settings_now(running)
    home = _lost(tmp_path, running)
    changed = settings_now(running)

    shown = _by_audit(home, "--dry-run")
    assert settings_now(running) == changed
    done = _by_audit(home)
    again = _by_audit(home)

    assert (shown.code, done.code, again.code) == (0, 0, 0), done.text + again.text
    assert "numCoresPerSocket" in shown.out
    assert settings_now(running) == before
    assert _restore(home).code == 0


def test_the_study_s_database_stays_and_is_named(tmp_path: Path, lab: LabFactory) -> None:
    """It is not the VM's: with every setting as before, the restore has succeeded."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    steps.measure(steps.take())
    for file in steps.home.glob("vnuma.db*"):
        file.unlink()

    done = _by_audit(steps.home)

    assert done.code == 0, done.text
    assert steps.study.dataset.database in done.out
    assert settings_now(running) == before
    assert _restore(steps.home).code == 0


def test_what_others_write_meanwhile_does_not_end_a_restore_from_the_log(
    tmp_path: Path, lab: LabFactory
) -> None:
    """hostd, backups and Tools write keys after a shutdown: the VM is read and compared again, and is on."""
    running = lab()
    before = settings_now(running)
    home = _lost(tmp_path, running)
    running.fault("keys_written", times=3)

    done = _by_audit(home)

    assert done.code == 0, done.text
    assert settings_now(running) == before
    assert len([event for event in running.events if event["event"] == "keys_written"]) == 3


def test_a_restore_from_the_log_that_fails_leaves_the_vm_on(tmp_path: Path, lab: LabFactory) -> None:
    """Somebody writes without end: the VM that the run had shut down boots in the shape that it has."""
    running = lab()
    home = _lost(tmp_path, running)
    running.fault("keys_written", times=0)

    done = _by_audit(home)

    assert done.code == 7, done.text
    assert settings_now(running)["power"] == "poweredOn"


def test_a_restore_from_the_log_waits_for_vcenter_as_long_as_the_study_says(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The log has its deadlines: with vCenter gone, it gives up then, and not after the usual 15 minutes."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running, power={"vcenter_retry_s": 1})
    steps.shape(steps.take())
    for file in steps.home.glob("vnuma.db*"):
        file.unlink()
    running.fault("unavailable", times=0, method="RetrievePropertiesEx")

    done = _by_audit(steps.home)

    assert done.code == 7, done.text


def test_a_log_that_was_altered_still_restores_and_says_so(tmp_path: Path, lab: LabFactory) -> None:
    """It is the only way back: which line does not follow from the one before is named with it."""
    running = lab()
    before = settings_now(running)
    home = _lost(tmp_path, running)
    log = home / "vnuma.audit.jsonl"
    first, rest = log.read_bytes().split(b"\n", 1)
    log.write_bytes(first.replace(b'"ticket": null', b'"ticket": "CHG1"') + b"\n" + rest)

    shown = _by_audit(home, "--dry-run")
    done = _by_audit(home)

    assert (shown.code, done.code) == (0, 0), done.text
    assert f"{log}: line 2 does not follow" in done.err
    assert settings_now(running) == before


def test_by_the_audit_log_nobodys_later_change_is_overwritten(tmp_path: Path, lab: LabFactory) -> None:
    """A colleague set the cores meanwhile: refused with the three values, and kept with --theirs."""
    running = lab()
    before = settings_now(running)
    home = _lost(tmp_path, running)
    change_by_hand(running, numCoresPerSocket=2)

    refused = _by_audit(home)
    kept = _by_audit(home, "--theirs")

    assert refused.code == 7, refused.text
    assert "numCoresPerSocket" in refused.err
    assert kept.code == 0, kept.text
    assert settings_now(running)["cores_per_socket"] == 2
    assert settings_now(running)["power"] == before["power"]


def test_by_the_audit_log_no_vm_of_a_living_run_is_touched(tmp_path: Path, lab: LabFactory) -> None:
    """Another controller has marked the VM since: it is theirs to restore."""
    running = lab()
    home = _lost(tmp_path, running)
    mark_by_hand(running, '{"run": "other.3", "holder": "ann@site", "since": "now"}')
    marked = settings_now(running)

    ran = _by_audit(home)

    assert ran.code == 8, ran.text
    assert "other.3" in ran.err
    assert settings_now(running) == marked


def test_a_vm_with_an_unknown_run_s_mark_is_never_called_at_its_baseline(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Store and audit log are gone: the mark on the VM is what is left, and names whose it is."""
    home = _lost(tmp_path, lab())
    (home / "vnuma.audit.jsonl").unlink()

    ran = _restore(home, "-i", home / "hosts.yml")

    assert ran.code == 8, ran.text
    for words in ("sql16", "small.1", "--from-audit"):
        assert words in ran.err


def test_a_run_that_restored_its_vm_leaves_nothing_to_answer_for(tmp_path: Path, lab: LabFactory) -> None:
    """Its audit log has every change undone, so a lost store costs nothing."""
    steps = Steps.prepared(tmp_path / "a", lab())
    steps.shape(steps.take())
    steps.restore()
    for file in steps.home.glob("vnuma.db*"):
        file.unlink()

    assert _restore(steps.home, "-i", steps.home / "hosts.yml").code == 0


def test_a_damaged_audit_log_keeps_no_vm_from_its_restore(tmp_path: Path, lab: LabFactory) -> None:
    """The store has the VM's run: it is restored and reported, followed by the log's error."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    steps.shape(steps.take())
    (steps.home / "vnuma.audit.jsonl").write_text("damaged\n", encoding="utf-8")

    ran = _restore(steps.home)

    assert settings_now(running) == before
    assert "line 1" in ran.err


def test_a_file_that_is_no_audit_log_is_refused(tmp_path: Path) -> None:
    """With the line's number; nothing is connected to."""
    file = tmp_path / "hosts.jsonl"
    file.write_text('{"at": "2026-01-01T00:00:00Z"}\n', encoding="utf-8")

    ran = _restore(tmp_path, "--from-audit", file, "-i", file)

    assert ran.code == 3, ran.text
    assert "line 1" in ran.err


def test_what_the_system_refuses_for_one_vm_keeps_no_other_from_its_restore(
    tmp_path: Path, lab: LabFactory
) -> None:
    """A lock that cannot be opened is one VM's problem: it is named with exit code 7, the other restored."""
    small = {"memory_gb": 32}
    running = lab(vms=[small | {"name": "sql16"}, small | {"name": "sql17"}])
    before = settings_now(running, "sql17")
    steps = Steps.prepared(tmp_path / "a", running, vms=["sql16", "sql17"])
    contexts = [steps.take(), steps.take("sql17")]
    steps.shape(contexts[1])
    for file in steps.home.glob("vnuma.db*"):
        file.unlink()
    locks = Path(os.environ["VNUMA_HOME"]) / "locks"
    lock = locks / f"{hashlib.sha256(contexts[0].vm.vm_key.encode()).hexdigest()[:24]}.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir(parents=True)

    done = _by_audit(steps.home)

    assert (done.code, "sql16 may not be at its baseline" in done.err) == (7, True), done.text
    assert settings_now(running, "sql17") == before
