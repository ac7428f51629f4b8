"""Faults that can strike a run besides signals; each is over when its function returns."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.support.proxy import BAD_ANSWERS
from tests.support.small_disk import fill
from tools.bench.processes import descendants
from tools.soak.ground import PATIENCE_S, SHUTDOWN_S, Ground, start_engine
from tools.soak.points import Strike
from tools.soak.watch import signalled
from vnuma.domain.study.study import Dataset
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.lease.supervision import SILENT_AFTER
from vnuma.errors import VnumaError
from vnuma.lab import faults
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.database.dataset import drop
from vnuma.store.tables import iso

CODES: Mapping[Strike, frozenset[int]] = {
    Strike.INT: frozenset({130}),
    Strike.TERM: frozenset({130}),
    Strike.DISK: frozenset({9}),
    Strike.DESCRIPTORS: frozenset({4, 9}),
    Strike.FREEZE_RESTORE: frozenset({7, 8}),
    Strike.VCENTER_GONE: frozenset({7, 130}),
    Strike.AUDIT_FILE: frozenset({9}),
}
"""Exit codes that a run may end with besides 0 and 6, with all its VMs as they were. After somebody else's
restore it names VMs that it no longer holds (7), since their state is unknown to it.
"""

LOCKED_S = 1.0
"""How long a frozen process may lock the store; then it is frozen at another moment."""

FROZEN_TRIES = 20

LEAVES_AFTER_S = 1.2
"""Between two requests to stop; sooner they count as one."""

LEAVES_WITHIN_S = 5.0
"""How long a run may take to end after the third."""


@dataclass(frozen=True)
class FaultTarget:
    """A run to strike, with the random durations."""

    ground: Ground
    engine: ForkServerProcess
    dice: random.Random

    @property
    def pid(self) -> int:
        """The engine's process."""
        assert self.engine.pid is not None
        return self.engine.pid

    def until_its_end(self) -> None:
        """Raises Stuck."""
        self.ground.wait_until(lambda: not self.engine.is_alive(), "end of a run that met a fault")


def bad_answers(run: FaultTarget) -> bool:
    """One or two of vCenter's answers are invalid. Struck if the run made a request before its end."""
    proxy = run.ground.proxy
    before, times = proxy.spoiled, run.dice.choice((1, 2))
    proxy.turn(run.dice.choice(sorted(BAD_ANSWERS)), times)
    run.ground.wait_until(
        lambda: proxy.spoiled == before + times or not run.engine.is_alive(), "use of a bad answer"
    )
    proxy.turn("", 0)
    return proxy.spoiled > before


def handshake(run: FaultTarget) -> bool:
    """Connections to vCenter hang in their TLS handshake, sometimes longer than any time-out."""
    proxy = run.ground.proxy
    proxy.open.clear()
    try:
        run.engine.join(run.dice.choice((1, 2, 4, 35)))
    finally:
        proxy.open.set()
    return True


def sql_handshake(run: FaultTarget) -> bool:
    """The next logins at SQL Server hang in their TLS handshake. Struck if one did before the run's end."""
    relays = run.ground.sql_relays.values()
    hung, bytes_told = sum(relay.hung for relay in relays), run.dice.choice((0, 5, 60, 600))
    for relay in relays:
        relay.bytes_told = bytes_told
        relay.open.clear()
    try:
        run.ground.wait_until(
            lambda: sum(relay.hung for relay in relays) > hung or not run.engine.is_alive(),
            "login at SQL Server",
        )
        run.engine.join(run.dice.choice((1, 4, 20)))
    finally:
        for relay in relays:
            relay.open.set()
    return sum(relay.hung for relay in relays) > hung


def servers(run: FaultTarget) -> bool:
    """The lab is suspended."""
    os.kill(run.ground.lab.pid, signal.SIGSTOP)
    try:
        run.engine.join(run.dice.uniform(0.2, 6))
    finally:
        os.kill(run.ground.lab.pid, signal.SIGCONT)
    return True


def foreign_write(run: FaultTarget) -> bool:
    """hostd, a backup or Tools write a key before the next reconfigure."""
    run.ground.lab.fault("keys_written")
    return True


def disk(run: FaultTarget) -> bool:
    """No space in vnuma's home until the run has ended."""
    hog = run.ground.home / "hog"
    try:
        fill(hog)
        run.until_its_end()
    finally:
        hog.unlink(missing_ok=True)
    return True


def descriptors(run: FaultTarget) -> bool:
    """The engine cannot open files unless it closes some."""
    taken = {int(path.name) for path in Path(f"/proc/{run.pid}/fd").iterdir()}
    lowest_free = min(set(range(len(taken) + 1)) - taken)
    most = resource.prlimit(run.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(run.pid, resource.RLIMIT_NOFILE, (lowest_free, most))
    run.until_its_end()
    return True


def freeze(run: FaultTarget) -> bool:
    """All of the run's processes are suspended for a while."""
    with _frozen(run.pid):
        time.sleep(run.dice.uniform(0.2, 3))
    return True


def freeze_restore(run: FaultTarget) -> bool:
    """They are suspended until somebody restores the VMs; then they continue."""
    for _ in range(FROZEN_TRIES):
        if not run.engine.is_alive():
            return False
        with _frozen(run.pid):
            if _silent(run.ground.home / "vnuma.db"):
                home = run.ground.home
                person = start_engine(["restore"], home, run.ground.folder / "restore.log")
                person.join(PATIENCE_S)
                late = frozenset({7, 8, 9})  # the run may have restored them by then
                run.ground.check_code(person.exitcode, late | {0}, "restore", late)
                break
        time.sleep(0.05)
    run.until_its_end()
    return True


def write_restore(run: FaultTarget) -> bool:
    """The run is killed; a person restores its VMs, to which somebody writes."""
    _end(run)
    run.ground.lab.fault("keys_written")
    _restored_by_hand(run, "restore")
    return True


def write_audit(run: FaultTarget) -> bool:
    """The run is killed and its store away; a person restores its VMs, to which somebody writes."""
    _end(run)
    home, log = run.ground.home, run.ground.home / "vnuma.audit.jsonl"
    kept = home / "kept"
    kept.mkdir()
    before = log.read_bytes()
    for file in home.glob("vnuma.db*"):
        file.rename(kept / file.name)
    run.ground.lab.fault("keys_written")
    _restored_by_hand(run, "restore", "--from-audit", str(log), "-i", str(home / "hosts.yml"))
    for file in home.glob("vnuma.db*"):
        file.unlink()
    for file in kept.iterdir():
        file.rename(home / file.name)
    kept.rmdir()
    log.write_bytes(before)
    return True


def write_resume(run: FaultTarget) -> bool:
    """The run is killed, and somebody writes to a VM while it is resumed."""
    _end(run)
    run.ground.lab.fault("keys_written")
    return True


def slow_guest(run: FaultTarget) -> bool:
    """The next guest to shut down takes longer than the run waits, or almost as long."""
    run.ground.lab.fault("shutdown_slow", seconds=run.dice.choice((SHUTDOWN_S - 3, SHUTDOWN_S + 5)))
    return True


def vcenter_gone(run: FaultTarget) -> bool:
    """vCenter answers nothing more; the user asks three times to stop, which ends the run. It comes back."""
    run.ground.lab.fault("unavailable", times=0)
    run.engine.join(run.dice.uniform(0.5, 5))
    for _ in range(3):
        signalled(run.pid, signal.SIGINT)
        run.engine.join(LEAVES_AFTER_S)
    run.engine.join(LEAVES_WITHIN_S)
    if run.engine.is_alive():
        run.ground.tally.stuck.append(f"[{run.ground.name}] a third Ctrl-C did not end the run")
        _end(run)
    faults.clear(run.ground.lab.state)
    _restored_by_hand(run, "restore")
    return True


def audit_file(run: FaultTarget) -> bool:
    """The audit log's place is a folder until the run has ended."""
    log = run.ground.home / "vnuma.audit.jsonl"
    kept = log.rename(log.with_suffix(".kept"))
    log.mkdir()
    try:
        run.until_its_end()
    finally:
        log.rmdir()
        kept.rename(log)
    return True


def dropped(run: FaultTarget) -> bool:
    """The run is killed, and the study's database dropped. Struck if a VM had one."""
    _end(run)
    found = False
    for target in Inventory(run.ground.home / "hosts.yml").targets().values():
        with suppress(VnumaError), connect(sql_server(target)) as connection:
            found = drop(connection, Dataset().database) or found
    return found


def _end(run: FaultTarget) -> None:
    """Kill the run with all its processes."""
    for pid in (run.pid, *descendants(run.pid)):
        signalled(pid, signal.SIGKILL)
    run.until_its_end()


def _restored_by_hand(run: FaultTarget, *words: str) -> None:
    """A person's restore, which has to succeed."""
    person = start_engine(list(words), run.ground.home, run.ground.folder / "restore.log")
    person.join(PATIENCE_S)
    faults.clear(run.ground.lab.state)
    run.ground.check_code(person.exitcode, frozenset({0}), " ".join(words), frozenset())


def _silent(database: Path) -> bool:
    """Age the last heartbeat, as after minutes of suspension; False while they lock the store."""
    heard = iso(datetime.now(UTC) - SILENT_AFTER)
    try:
        with closing(sqlite3.connect(database, timeout=LOCKED_S, isolation_level=None)) as store:
            store.execute("UPDATE run SET heartbeat_at = ?", [heard])
    except sqlite3.OperationalError:
        return False
    return True


@contextmanager
def _frozen(pid: int) -> Iterator[None]:
    """Suspend a process and its descendants, including those started meanwhile."""
    stopped: list[int] = []
    while new := [one for one in (pid, *descendants(pid)) if one not in stopped]:
        stopped += [one for one in new if signalled(one, signal.SIGSTOP)]
        if not any(one in stopped for one in new):
            break
    try:
        yield
    finally:
        for one in reversed(stopped):
            signalled(one, signal.SIGCONT)


def fault(strike: Strike) -> Callable[[FaultTarget], bool]:
    """The function of that name. It returns whether it struck; a run that it ends has ended by then."""
    found: Callable[[FaultTarget], bool] = globals()[strike.name.lower()]
    return found
