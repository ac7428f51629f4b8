"""What the tests let other processes do. Each shares nothing with the tests' own, as a controller would.

They are forks of a process that has imported this module and done nothing else: an interpreter for each would
spend most of its time on imports.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event, func, select

from vnuma.domain.vm.change import Edit
from vnuma.engine.audit.log import Journal, new_line
from vnuma.engine.design_check.history import record
from vnuma.errors import StoreError, VmHeld, VnumaError
from vnuma.store import attempts, cells, leases, runs, tables
from vnuma.store.audit import AuditLine
from vnuma.store.open import open_for_reading, open_store
from vnuma.store.rows import Busy, Outcome
from vnuma.store.tables import utc_now

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload([__name__])
ANSWER_S = 300


class Worker:
    """One such process, with a pipe to it."""

    def __init__(self, work: Callable[..., None], *args: object) -> None:
        self.pipe, theirs = FORKED.Pipe()
        self.process = FORKED.Process(target=_in_environment, args=(dict(os.environ), work, theirs, *args))
        self.process.start()
        theirs.close()

    def answer(self) -> Any:
        """What it sends next."""
        assert self.pipe.poll(ANSWER_S), "the other process does not answer"
        return self.pipe.recv()

    def answer_or_end(self) -> Any:
        """What it sends next; None if it ends without."""
        try:
            return self.answer()
        except EOFError:
            return None

    def end(self) -> None:
        """Wait for its end."""
        self.pipe.close()
        self.process.join(ANSWER_S)
        self.process.close()

    def kill(self) -> None:
        """kill -9, and wait for its end."""
        self.process.kill()
        self.end()


def _in_environment(environment: Mapping[str, str], work: Callable[..., None], *args: object) -> None:
    """The process that forks has the environment of the test that came first."""
    os.environ.clear()
    os.environ.update(environment)
    work(*args)


def together(number: int, work: Callable[..., None], *args: object) -> list[Any]:
    """Let several processes do the same at the same moment; their answers."""
    workers = [Worker(work, *args) for _ in range(number)]
    for worker in workers:
        assert worker.answer() == "ready"
    for worker in workers:
        worker.pipe.send("go")
    answers = [worker.answer() for worker in workers]
    for worker in workers:
        worker.end()
    return answers


def wait_for_go(pipe: Pipe) -> None:
    """Say that the imports are done and wait for the others."""
    pipe.send("ready")
    pipe.recv()


def open_and_count(pipe: Pipe, url: str) -> None:
    """Open the store; answer how many revisions its history has, or the error."""
    wait_for_go(pipe)
    try:
        store = open_store(url)
        with store.read() as conn:
            pipe.send(conn.scalar(select(func.count()).select_from(tables.schema_history)))
    except StoreError as error:
        pipe.send(str(error))


def start_study(pipe: Pipe, url: str) -> None:
    """Start a run of one new study; answer its name, or the error."""
    wait_for_go(pipe)
    try:
        store = open_store(url)
        with store.write() as conn:
            pipe.send(runs.create_run(conn, runs.save_study(conn, "quick", "a: 1\n"), seed=1).name)
    except StoreError as error:
        pipe.send(str(error))


def record_check(pipe: Pipe, url: str) -> None:
    """Record a check of one estate; answer whether it is recorded, or the error."""
    from tests.estate.build import checked, estate_of  # noqa: PLC0415 - the other workers need no rules

    result, store = checked(estate_of("sql-a")), open_store(url)
    wait_for_go(pipe)
    try:
        record(store, result)
        pipe.send("recorded")
    except VnumaError as error:
        pipe.send(type(error).__name__)


def append_lines(pipe: Pipe, log: Path, number: int) -> None:
    """Append so many lines to an audit log, each with another action."""
    wait_for_go(pipe)
    for count in range(number):
        action = f"{os.getpid()}.{count}"
        with new_line(log, AuditLine(utc_now(), "x", "x", "x", None, None, action, [], None)):
            pass
    pipe.send("appended")


def change_and_die(pipe: Pipe, url: str, moment: int) -> None:
    """Record a change, and end by kill -9 before that step of writing it; say when the change is made."""
    left = iter(range(moment))

    def ends(work: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any) -> Any:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*args)

        return step

    store = open_store(url)
    event.listen(Engine, "commit", ends(lambda _: None))
    os.write, os.fsync = ends(os.write), ends(os.fsync)
    with Journal(store, "key", "sql16").change("power", (Edit("power", "on", "off"),)):
        pipe.send("made")


def create_runs(pipe: Pipe, url: str, number: int) -> None:
    """Create runs of one study, each with a text of its own; answer their names."""
    wait_for_go(pipe)
    store = open_store(url)
    names = []
    for index in range(number):
        with store.write() as conn:
            study = runs.save_study(conn, "quick", f"by: {os.getpid()}\nn: {index}\n")
            names.append(runs.create_run(conn, study, seed=1).name)
    pipe.send(names)


def claim_all(pipe: Pipe, url: str, run_id: int, vms: list[tuple[int, int]]) -> None:
    """Claim and finish the VMs' cells until none is left; answer the cells in order."""
    wait_for_go(pipe)
    store = open_store(url)
    claimed = []
    left = list(vms)
    while left:
        for vm_id, token in list(left):
            with store.write() as conn:
                got = cells.claim_next(conn, vm_id, token, 1, exclusive_host=True)
            if got is None:
                left.remove((vm_id, token))
            elif not isinstance(got, Busy):
                claimed.append((vm_id, got.position))
                with store.write() as conn:
                    attempts.finish(conn, got.id, token, Outcome.VALID)
    pipe.send(claimed)


def take_leases(pipe: Pipe, url: str, run_ids: list[int]) -> None:
    """Try to lease one VM to each run; answer which of them got it."""
    wait_for_go(pipe)
    store = open_store(url)
    won = []
    for run_id in run_ids:
        try:
            with store.write() as conn:
                leases.take_lease(conn, "vc/1", run_id, "rival")
        except VmHeld:
            continue
        won.append(run_id)
    pipe.send(won)


def write_and_hang(pipe: Pipe, url: str) -> None:
    """Commit one study, then stay inside a transaction that wrote another."""
    store = open_store(url)
    with store.write() as conn:
        runs.save_study(conn, "committed", "a: 1\n")
    with store.write() as conn:
        runs.save_study(conn, "uncommitted", "a: 1\n")
        pipe.send("written")
        pipe.recv()


def raise_token(pipe: Pipe, url: str, vm_key: str, run_id: int) -> None:
    """Raise the VM's token; announce it before and answer after."""
    store = open_store(url)
    pipe.send("raising")
    with store.write() as conn:
        pipe.send(leases.raise_token(conn, vm_key, run_id))


def open_as_nobody(pipe: Pipe, url: str) -> None:
    """Open the store without root's rights; answer the error."""
    _become_nobody()
    pipe.send(error_of(url, 1))


def read_as_nobody(pipe: Pipe, url: str) -> None:
    """Open the store for reading without root's rights; answer the error, or None."""
    _become_nobody()
    try:
        open_for_reading(url)
    except StoreError as error:
        pipe.send(str(error))
    else:
        pipe.send(None)


def _become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


def write_with_file_limit(pipe: Pipe, url: str, limit: int) -> None:
    """Write until no file may grow any more; answer the error."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    pipe.send(error_of(url, 10_000))


def error_of(url: str, studies: int) -> str | None:
    """Save 2 KB studies, one unit each, until that fails; the error, or None."""
    try:
        store = open_store(url)
        for index in range(studies):
            with store.write() as conn:
                runs.save_study(conn, f"filler{index}", "x" * 2000)
    except StoreError as error:
        return str(error)
    return None
