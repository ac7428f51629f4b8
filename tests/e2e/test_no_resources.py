"""No room, no file descriptors, a bug: whatever ends the play, the VMs are restored and the code is right."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support import small_disk as disk
from tests.support.cli import command, vnuma_here
from tests.support.looking import change_by_hand, settings_now
from tests.support.stores import new_store
from tests.support.supervised import Struck
from vnuma.engine.access.locking import vm_lock
from vnuma.engine.actions.steps import restore
from vnuma.engine.lease.supervision import release_dead_supervisor
from vnuma.errors import (
    AccountRefused,
    EnvironmentProblem,
    LoginRefused,
    NotAtBaseline,
    StoreBusy,
    StoreError,
    VmHeld,
)
from vnuma.logins import Logins


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home on a disk of its own."""
    with disk.small_disk(tmp_path / "disk", "size=64m,mode=0700") as folder:
        monkeypatch.setenv("VNUMA_HOME", str(folder))
        yield folder


def fill(folder: Path) -> None:
    """Leave not a byte of room."""
    disk.fill(folder / "hog")


def read_only(folder: Path) -> None:
    """From now on nothing is written there; what is open stays open."""
    for options in ("--bind", "--options=remount,bind,ro"):
        subprocess.run(["mount", options, str(folder), str(folder)], check=True, capture_output=True)


@contextmanager
def limits_kept(*which: int) -> Iterator[None]:
    """This process' limits as they were, afterwards."""
    before = {limit: resource.getrlimit(limit) for limit in which}
    try:
        yield
    finally:
        for limit, values in before.items():
            resource.setrlimit(limit, values)


def no_more_descriptors() -> None:
    """From now on nothing can be opened, unless something that is open now is closed."""
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def test_a_full_disk_in_mid_run_leaves_the_vm_as_it_was(lab: LabFactory, small_disk: Path) -> None:
    """Exit code 9, by a store's error that says that the VM was restored."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(small_disk, running)

    ended = Struck(running, lambda: fill(small_disk)).run(steps)

    assert settings_now(running) == before
    assert isinstance(ended.worst, StoreError), ended.problems
    assert [done.vm for done in ended.restored] == ["sql16"] or "sql16" in str(ended.problems), ended


@pytest.mark.long
def test_a_full_disk_and_a_foreign_change_name_the_vm(lab: LabFactory, small_disk: Path) -> None:
    """Exit code 7 takes precedence over the disk's 9."""
    running = lab()
    steps = Steps.prepared(small_disk, running)

    def strike() -> None:
        fill(small_disk)
        change_by_hand(running, "sql16", cpuAllocation=vim.ResourceAllocationInfo(reservation=700))

    ended = Struck(running, strike).run(steps)

    assert isinstance(ended.worst, NotAtBaseline), ended.problems


@pytest.mark.long
def test_a_home_that_becomes_read_only_leaves_the_vm_as_it_was(lab: LabFactory, small_disk: Path) -> None:
    """As file systems do on an error: nothing can be stored; exit code 9."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(small_disk, running)

    try:
        ended = Struck(running, lambda: read_only(small_disk)).run(steps)
    finally:
        subprocess.run(["umount", "--lazy", str(small_disk)], check=True)

    assert settings_now(running) == before
    assert isinstance(ended.worst, StoreError), ended.problems


def test_a_home_that_is_read_only_is_reported_without_a_traceback(small_disk: Path) -> None:
    """Whatever a verb wanted to write there: exit code 9, and how to find out why it is read-only."""
    read_only(small_disk)

    ran = vnuma_here("lab", "up")

    subprocess.run(["umount", "--lazy", str(small_disk)], check=True)
    assert ran.code == 9


def test_a_vm_is_not_changed_where_it_could_not_be_locked_later(lab: LabFactory, small_disk: Path) -> None:
    """What a restore needs on a full disk is made before the first change, or nothing is changed."""
    running = lab()
    steps = Steps.prepared(small_disk, running)
    before = running.events
    read_only(small_disk)

    with pytest.raises(StoreError):
        steps.take()
    with pytest.raises(StoreError), vm_lock(small_disk, "u/v", "sql17"):
        pass

    subprocess.run(["umount", "--lazy", str(small_disk)], check=True)
    assert running.events == before
    context = steps.take()
    read_only(small_disk)
    with (
        vm_lock(small_disk, context.vm.vm_key, "sql16"),
        pytest.raises(VmHeld),
        vm_lock(small_disk, context.vm.vm_key, "sql16", wait_s=0),
    ):
        pass
    subprocess.run(["umount", "--lazy", str(small_disk)], check=True)


@pytest.mark.long
def test_a_play_that_no_run_launched_restores_its_vm_on_a_full_disk(
    lab: LabFactory, small_disk: Path
) -> None:
    """Neither heartbeats nor a database that cannot be recorded as dropped prevent it.

    Another process has the store open: SQLite cannot recreate its index on a full disk.
    """
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(small_disk, running, dataset={"drop_after": True})
    steps.measure(steps.take())
    with steps.store.kept_open():
        fill(small_disk)
        with pytest.raises(StoreError):
            restore(steps.run.name, steps.target, "refuse", "always")

    assert settings_now(running) == before


def test_a_refused_account_stays_known_on_a_full_disk(small_disk: Path) -> None:
    """Each step of a play is a process of its own: one that forgot it would lock the account."""
    with Logins(small_disk).alone("vc01 study"):
        fill(small_disk)
        Logins(small_disk).refused("vc01 study", LoginRefused("refused", fix="none"), most=1, password=True)

    with pytest.raises(AccountRefused):
        Logins(small_disk).require_open("vc01 study")


def test_a_busy_store_is_not_a_full_one(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who keeps it locked may be the run's own controller, so nobody takes its VM from it."""
    steps = Steps.prepared(tmp_path / "a", lab())
    monkeypatch.setattr("vnuma.store.open.LOCK_WAIT_S", 0.2)
    with closing(sqlite3.connect(steps.home / "vnuma.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreBusy):
            release_dead_supervisor(steps.store, steps.run)


@pytest.mark.long
def test_without_descriptors_the_vm_is_restored_nevertheless(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """What restoring needs was reserved before the first change; secrets do not stay behind."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)

    with limits_kept(resource.RLIMIT_NOFILE):
        ended = Struck(running, no_more_descriptors).run(steps)

    assert settings_now(running) == before
    assert isinstance(ended.worst, EnvironmentProblem | StoreError), ended.problems
    assert [done.vm for done in ended.restored] == ["sql16"]
    assert not list((vnuma_home / "private").iterdir())


def test_a_bug_outside_the_play_is_reported_after_the_vms_are_safe(tmp_path: Path, lab: LabFactory) -> None:
    """The play ends, the VM is restored, and the bug itself decides the exit code.

    Nor does restoring need the file of passwords: the run has read it before the first change.
    """
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)

    def strike() -> None:
        (tmp_path / "a" / "password").unlink()
        raise AttributeError("nobody foresaw this")

    ended = Struck(running, strike).run(steps)

    assert settings_now(running) == before
    assert [done.vm for done in ended.restored] == ["sql16"]
    assert isinstance(ended.worst, AttributeError)


def test_an_error_that_nobody_can_read_keeps_its_exit_code(vnuma_home: Path) -> None:
    """Standard output and error on a full disk: the code is all that is left to tell it."""
    vnuma_home.mkdir()
    new_store(vnuma_home / "vnuma.db")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = subprocess.run(command("restore", "nosuch"), stdout=full, stderr=full, check=False)

    assert ran.returncode == 3
