"""Which process supervises a run, and when a run counts as stopped."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.store.build import Leased, new_run, new_vm
from vnuma.engine.lease.supervision import (
    ask_to_stop,
    claim_supervision,
    heartbeat,
    is_alive,
    require_supervision,
    stop_unless_worked_on,
)
from vnuma.store import cells, leases, runs
from vnuma.store.open import Store
from vnuma.store.rows import RestoreOutcome, Run, RunState, StopRequest
from vnuma.store.tables import utc_now


def now(store: Store, run: Run) -> Run:
    """The run's row as it is stored now."""
    with store.read() as connection:
        return runs.get_run(connection, run.name)


def restored(store: Store, leased: Leased, outcome: RestoreOutcome) -> None:
    """Store a restore's outcome, as `vnuma restore` does, and what follows for the run."""
    with store.write() as connection:
        cells.set_restored(connection, leased.vm.id, leased.token, outcome)
        leases.release_lease(connection, leased.vm.vm_key, leased.token)
    stop_unless_worked_on(store, leased.run)


def test_a_run_in_conflict_waits_until_its_last_vm_is_at_its_baseline(store: Store) -> None:
    """Restoring its other VM does not settle what somebody has to decide."""
    run = new_run(store)
    changed, other = new_vm(store, run), new_vm(store, run, key="vc/2", name="sql17")
    with store.write() as connection:
        runs.set_run_state(connection, run.id, RunState.CONFLICT)

    restored(store, other, RestoreOutcome.RESTORED)
    assert now(store, run).state is RunState.CONFLICT

    restored(store, changed, RestoreOutcome.THEIRS)
    assert now(store, run).state is RunState.STOPPED


def test_a_supervisor_that_ends_while_it_is_looked_at_raises_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its /proc/PID/stat is then empty."""
    run = new_run(store)
    claim_supervision(store, run)
    genuine, stat = Path.read_text, Path(f"/proc/{os.getpid()}/stat")

    def ended(path: Path, *given: str) -> str:
        return "" if path == stat else genuine(path, *given)

    monkeypatch.setattr(Path, "read_text", ended)

    assert is_alive(now(store, run))


def test_a_supervisor_lives_while_it_is_heard_of_and_its_number_is_its_own(store: Store) -> None:
    """Silent for two minutes it is dead, here or elsewhere; so is one whose number a later process has."""
    run = new_run(store)
    claim_supervision(store, run)
    here = now(store, run)
    there = replace(here, supervisor_host="elsewhere")
    silent = utc_now() - timedelta(minutes=2)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as later:
        own = replace(here, supervisor_pid=later.pid)
        reused = replace(own, heartbeat_at=utc_now() - timedelta(seconds=60))
        lives = [is_alive(one) for one in (here, there, reused, own)]
        later.communicate()

    assert lives == [True, True, False, True]
    assert [is_alive(replace(one, heartbeat_at=silent)) for one in (here, there)] == [False, False]
    assert not is_alive(replace(own, heartbeat_at=utc_now()))


def test_a_process_that_nobody_waits_for_has_ended(store: Store) -> None:
    """As in a container without an init: it keeps its number."""
    run = new_run(store)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        claim_supervision(store, run, ended.pid)
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie from here on

        assert not is_alive(now(store, run))


def test_a_machine_that_gets_another_name_keeps_its_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a new DHCP lease during a night: the process stays the run's supervisor."""
    run = new_run(store)
    claim_supervision(store, run)

    monkeypatch.setattr(socket, "gethostname", lambda: "renamed")

    require_supervision(store, run)


def test_a_run_of_another_container_of_this_name_lives_by_its_heartbeats(store: Store) -> None:
    """Containers in the host's network have its name and their own process numbers, often 1 for each."""
    run = new_run(store)

    with claiming_in_a_container(store, run) as first:
        assert first == "claimed"
        theirs = now(store, run)
        assert is_alive(theirs)
        with claiming_in_a_container(store, run) as second:
            assert second != "claimed"

    assert is_alive(theirs)  # nobody can see from here that it has ended
    assert now(store, run) == theirs


@contextmanager
def claiming_in_a_container(store: Store, run: Run) -> Iterator[str]:
    """What process 1 of a new PID namespace is told that claims the run; it lives until the context ends.

    Skips the test where no namespace can be made.
    """
    program = """
import sys
from vnuma.engine.lease.supervision import claim_supervision
from vnuma.errors import VmHeld
from vnuma.store import runs
from vnuma.store.open import open_store
store = open_store(sys.argv[1])
with store.read() as connection:
    run = runs.get_run(connection, sys.argv[2])
try:
    claim_supervision(store, run)
    print("claimed", flush=True)
except VmHeld as refused:
    print(refused.what, flush=True)
sys.stdin.read()
"""
    isolated = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if shutil.which("unshare") is None or subprocess.run([*isolated, "true"], check=False).returncode:
        pytest.skip("no PID namespace can be made here")
    url = store.place.url.render_as_string()
    command = [*isolated, sys.executable, "-c", program, url, run.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        with process.stdin:
            yield process.stdout.readline().strip()


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.FAILED])
def test_a_run_that_has_ended_keeps_its_state(store: Store, state: RunState) -> None:
    """A VM that is restored later, by hand, does not make it a stopped one."""
    leased = new_vm(store)
    with store.write() as connection:
        runs.set_run_state(connection, leased.run.id, state)

    restored(store, leased, RestoreOutcome.RESTORED)

    assert now(store, leased.run).state is state


def test_work_of_hours_is_heard_of_meanwhile(store: Store) -> None:
    """A silent process counts as dead. One that lost the run sends nothing for another."""
    run = new_run(store)
    claim_supervision(store, run)
    first, tries = now(store, run).heartbeat_at, 0

    with heartbeat(store, run, every_s=0.001):
        while now(store, run).heartbeat_at == first and tries < 10_000:
            tries += 1

    assert now(store, run).heartbeat_at != first
    assert is_alive(now(store, run))


NOW, CELL = StopRequest.NOW, StopRequest.CELL


@pytest.mark.parametrize(
    ("asked", "state", "stored"),
    [
        ([CELL], RunState.RUNNING, CELL),
        ([NOW], RunState.RUNNING, NOW),
        ([CELL, NOW], RunState.RUNNING, NOW),
        ([NOW, CELL], RunState.RUNNING, NOW),
        ([NOW], RunState.STOPPED, None),
    ],
)
def test_a_later_request_to_stop_revokes_no_earlier_one(
    store: Store, asked: list[StopRequest], state: RunState, stored: StopRequest | None
) -> None:
    """The sooner one counts; a run that has ended is not asked."""
    run = new_run(store)
    with store.write() as connection:
        runs.set_run_state(connection, run.id, state)

    for one in asked:
        url = store.place.url.render_as_string(hide_password=False)
        ask_to_stop(run.name, after_cell=one is CELL, url=url)

    assert now(store, run).stop_requested is stored


def test_whoever_asks_a_dead_run_to_stop_hears_that_nobody_does(store: Store) -> None:
    """Its VMs have to be restored then."""
    run, url = new_run(store), store.place.url.render_as_string(hide_password=False)
    dead = [ask_to_stop(run.name, after_cell=False, url=url) for _ in range(2)]
    claim_supervision(store, run)

    alive = ask_to_stop(run.name, after_cell=False, url=url)

    assert dead[0] == dead[1] != alive
