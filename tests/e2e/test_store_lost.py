"""A store that is lost while VMs are changed: exit code 7, and the audit log as the way back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import Ran, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import change_by_hand, mark_by_hand, settings_now


def _lose(home: Path) -> None:
    """Somebody deletes the store."""
    for file in home.glob("vnuma.db*"):
        file.unlink()


def _lost(tmp_path: Path, running: LabHandle) -> Path:
    """The home of a controller that shaped its VM, and whose store somebody then deleted."""
    steps = Steps.shaped(tmp_path / "a", running)
    _lose(steps.home)
    return steps.home


def _restore(home: Path, *arguments: str | Path) -> Ran:
    return vnuma_here("restore", "--store", f"sqlite:///{home / 'vnuma.db'}", *arguments)


def _by_audit(home: Path, *arguments: str | Path) -> Ran:
    return _restore(home, "--from-audit", home / "vnuma.audit.jsonl", "-i", home / "hosts.yml", *arguments)


def test_the_audit_log_restores_what_the_store_no_longer_knows(tmp_path: Path, lab: LabFactory) -> None:
    """A new, empty store is no proof: exit 7, until the log has restored shape, power and mark.

    Shown first without a change, and done only once. The study's database is not the VM's: it stays, and is
    named.
    """
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    steps.measure(steps.take())
    home, changed = steps.home, settings_now(running)
    _lose(home)

    lost = _restore(home)
    shown = _by_audit(home, "--dry-run")
    assert settings_now(running) == changed
    done, again = _by_audit(home), _by_audit(home)

    assert (lost.code, shown.code, done.code, again.code) == (7, 0, 0, 0), lost.text + done.text + again.text
    assert settings_now(running) == before
    assert steps.study.dataset.database in done.out
    assert _restore(home).code == 0


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
    assert f"{log}: line 2" in done.err
    assert settings_now(running) == before


def test_by_the_audit_log_nobodys_later_change_is_overwritten(tmp_path: Path, lab: LabFactory) -> None:
    """A colleague set the cores meanwhile: refused with the three values, and kept with --theirs."""
    running = lab()
    before = settings_now(running)
    home = _lost(tmp_path, running)
    change_by_hand(running, numCoresPerSocket=2)

    refused = _by_audit(home)
    kept = _by_audit(home, "--theirs")

    assert (refused.code, kept.code) == (7, 0), refused.text + kept.text
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
    assert settings_now(running) == marked


def test_a_vm_with_an_unknown_run_s_mark_is_never_called_at_its_baseline(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Store and audit log are gone: the mark on the VM is what is left, and names whose it is."""
    home = _lost(tmp_path, lab())
    (home / "vnuma.audit.jsonl").unlink()

    ran = _restore(home, "-i", home / "hosts.yml")

    assert ran.code == 8, ran.text


def test_a_damaged_audit_log_keeps_no_vm_from_its_restore(tmp_path: Path, lab: LabFactory) -> None:
    """The store has the VM's run: it is restored and reported, followed by the log's error."""
    running = lab()
    before = settings_now(running)
    steps = Steps.shaped(tmp_path / "a", running)
    (steps.home / "vnuma.audit.jsonl").write_text("damaged\n", encoding="utf-8")

    assert _restore(steps.home).code != 0
    assert settings_now(running) == before


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
    _lose(steps.home)
    locks = Path(os.environ["VNUMA_HOME"]) / "locks"
    lock = locks / f"{hashlib.sha256(contexts[0].vm.vm_key.encode()).hexdigest()[:24]}.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir(parents=True)

    done = _by_audit(steps.home)

    assert done.code == 7, done.text
    assert settings_now(running, "sql17") == before
