"""What a store of 20 sites with 50 VMs each asks of PostgreSQL and of the controller.

No VM is touched: processes do a cell's units of work through the store's API, as many as the server's log
shows for a real cell, while the server's CPU time is taken. From that, and from a look at the whole run as
the controller takes it, follows where the limit is.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from tests.store.build import samples
from tests.support import postgresql
from tests.support.postgresql import Cluster
from tools.bench import cells as bench_cells
from tools.bench import processes
from tools.bench.figure import Figure, not_evaluated, untargeted
from vnuma.domain.study.order import PlannedCell
from vnuma.engine.run.progress import progress_of
from vnuma.store import attempts, audit, baselines, cells, facts, leases, runs, tables, vms
from vnuma.store import samples as sample_rows
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Claim, Outcome, Run, Vm
from vnuma.store.types import utc_now

FORK = multiprocessing.get_context("fork")
CELL_S = 300.0
"""A real cell's assumed duration: shut down, boot, and a few minutes of a workload."""

CELLS_OF_VM = 30
FACTS_OF_VM = 300
"""Of half of its cells, 20 each."""

SHARE = 0.7
"""How much of a processor the server may use before cells wait for it."""

STEPS = {
    "vm_topology": (6, 1, 2),
    "vm_power": (2, 2, 1),
    "guest_ready": (5, 2, 0),
    "sql_benchmark": (8, 5, 0),
}
"""Of each step after the claim: single reads, writes of an attempt's facts, lines of the audit log. Every one
begins with a read of run, study and VM, and the write of its own name.
"""
UNITS = sum(2 + sum(units) for units in STEPS.values()) + 6 + 2


@dataclass(frozen=True)
class Leased:
    """A VM of the run as a step finds it."""

    run: str
    name: str
    id: int
    key: str
    token: int


def many_sites(sites: int, each: int, writers: tuple[int, ...], seconds: float) -> Iterator[Figure]:
    """So many sites with so many VMs; numbers of processes that do cells at the same time."""
    what = f"{sites} sites with {each} VMs, one store on PostgreSQL"
    binaries = postgresql.find_binaries()
    if binaries is None or not processes.available():
        yield not_evaluated(what, "", "No PostgreSQL server on this machine, or no /proc.")
        return
    server = postgresql.start(binaries)
    try:
        url = server.new_store()
        leased = _filled(url, sites, each)
        done = {number: _cells_at_once(server, url, leased, number, seconds) for number in writers}
        look = _look(server, url, leased[0].run)
    finally:
        server.stop()
    yield from _figures(what, sites * each, done, look)


@dataclass(frozen=True)
class Done:
    """What so many processes did: cells a second, and the server's CPU seconds for one."""

    rate: float
    cpu_s: float


@dataclass(frozen=True)
class Look:
    """A look at the whole run: seconds, the server's CPU seconds, and the memory of the process in MB."""

    took_s: float
    cpu_s: float
    memory: float


def _figures(what: str, number: int, done: dict[int, Done], look: Look) -> Iterator[Figure]:
    rates = ", ".join(
        f"{writers}: {one.rate:.1f} cells/s, {one.rate * UNITS:.0f} transactions/s"
        for writers, one in done.items()
    )
    cpu = max(one.cpu_s for one in done.values())
    needed = number / CELL_S
    yield untargeted(
        f"{what}: {number} cells in {CELL_S:.0f} s",
        f"{needed * UNITS:.0f} transactions/s",
        f"{UNITS} transactions and 5 connections a cell; measured on shared cores, by writers: {rates}",
    )
    shown = min(0.1, look.took_s) * look.cpu_s / look.took_s
    used = needed * cpu + shown
    yield untargeted(
        "The same: PostgreSQL",
        f"{used:.2f} cores",
        f"{cpu * 1000:.0f} ms of CPU a cell, {look.cpu_s * 1000:.0f} ms a look at the run by the controller",
    )
    yield untargeted(
        "The same: the controller's look at the whole run",
        f"{look.took_s:.1f} s, {look.memory:.0f} MB",
        f"{number * CELLS_OF_VM} cells; looks get a tenth of the time",
    )
    yield untargeted(
        "VMs measured at once before one core of PostgreSQL is the limit",
        f"{(SHARE - shown) / cpu * CELL_S:.0f}",
        f"{SHARE:.0%} of a core, {CELL_S:.0f} s a cell; a server with more cores: as many times more",
    )


def _filled(url: str, sites: int, each: int) -> list[Leased]:
    """One run over all sites; each VM on a host of its own, leased, with its cells planned."""
    store = open_store(url)
    names = [f"sql{site}-{number}" for site in range(sites) for number in range(each)]
    study = bench_cells.study("sites", names, CELLS_OF_VM // 2)
    plan = [
        PlannedCell(2 * block + place, block, arm, arm)
        for block in range(CELLS_OF_VM // 2)
        for place, arm in enumerate(bench_cells.ARMS)
    ]
    with store.write() as conn:
        run = runs.create_run(conn, runs.save_study(conn, "sites", json.dumps(study)), seed=7)
        leased = [_leased(conn, run, name, plan) for name in names]
        conn.execute(_FACTS, {"run": run.id, "first": leased[0].id, "vms": len(names), "each": FACTS_OF_VM})
    store.disconnect()
    return leased


_FACTS = text(
    "INSERT INTO fact (run_id, vm_id, scope, key, value_json, at) "
    "SELECT :run, :first + number % CAST(:vms AS int), 'scope' || number % 9, 'key', '{}', now() "
    "FROM generate_series(0, CAST(:vms AS int) * :each - 1) AS number"
)


def _leased(conn: Any, run: Run, name: str, plan: list[PlannedCell]) -> Leased:
    key = f"vc{name.partition('-')[0]}/{name}"
    row = vms.add_vm(conn, run.id, vm_key=key, name=name, path=f"/DC/vm/{name}", esxi_host=f"esx-{name}")
    token = leases.take_lease(conn, key, run.id, "bench")
    baselines.save(conn, row.id, token, {"numCPUs": 16})
    cells.add_cells(conn, row.id, plan)
    return Leased(run.name, name, row.id, key, token)


def _cells_at_once(server: Cluster, url: str, leased: list[Leased], number: int, seconds: float) -> Done:
    began, before = time.monotonic(), _cpu_s(server)
    with FORK.Pool(number) as pool:
        parts = [(url, leased[part::number], seconds) for part in range(number)]
        count = sum(pool.starmap(_work, parts))
        pool.close()
        pool.join()
    return Done(count / (time.monotonic() - began), (_cpu_s(server) - before) / count)


def _work(url: str, leased: list[Leased], seconds: float) -> int:
    """Do cells until the time is over; how many."""
    store, until, count = open_store(url), time.monotonic() + seconds, 0
    while time.monotonic() < until:
        _cell(store, leased[count % len(leased)])
        count += 1
    store.disconnect()
    return count


def _cell(store: Store, vm: Leased) -> None:
    claimed = _claim(store, vm)
    for name, (reads, writes, lines) in STEPS.items():
        store.disconnect()  # each step is a process of its own
        _opened(store, vm)
        with store.write() as conn:
            attempts.set_step(conn, claimed.attempt_id, vm.token, name)
        for _ in range(reads):
            store.ask(lambda conn: leases.require_current(conn, vm.key, vm.token))
        for number in range(writes):
            with store.write() as conn:
                values = {f"fact{key}": {"value": number} for key in range(4)}
                facts.add_attempt_facts(conn, claimed.attempt_id, vm.token, {"bench": values})
        for _ in range(lines):
            with store.write() as conn:
                line = AuditLine(utc_now(), "bench", vm.name, vm.key, vm.run, None, "reconfigure", [], None)
                audit.add_line(conn, line, None)
    with store.write() as conn:
        sample_rows.add_samples(conn, claimed.attempt_id, vm.token, samples(3))
    with store.write() as conn:
        attempts.finish(conn, claimed.attempt_id, vm.token, Outcome.VALID)


def _opened(store: Store, vm: Leased) -> tuple[Run, Vm]:
    found = store.ask(lambda conn: vms.vm_at_work(conn, vm.run, vm.name))
    if found is None:
        raise RuntimeError(f"no VM {vm.name} in {vm.run}")
    return found[0], found[2]


def _claim(store: Store, vm: Leased) -> Claim:
    store.disconnect()
    run, known = _opened(store, vm)
    most = 2
    store.ask(lambda conn: cells.limits_of(conn, known, most))
    store.ask(lambda conn: attempts.lines_of_run(conn, run.id, vm.id))
    with store.write() as conn:
        cells.interrupt_attempts(conn, vm.id, vm.token)
        claimed = cells.claim_next(conn, vm.id, vm.token, most, exclusive_host=True)
        if claimed is None:  # its cells have ended: measure them again
            conn.execute(tables.cell.update().where(tables.cell.c.vm_id == vm.id).values(state="pending"))
            claimed = cells.claim_next(conn, vm.id, vm.token, most, exclusive_host=True)
    if isinstance(claimed, Claim):
        return claimed
    raise RuntimeError(f"no cell to claim for {vm.name}: {claimed}")


def _look(server: Cluster, url: str, run: str) -> Look:
    """In a process of its own, whose memory is then its."""
    before = _cpu_s(server)
    with FORK.Pool(1) as pool:
        took, memory = pool.apply(_look_now, (url, run))
        pool.close()
        pool.join()
    return Look(took, _cpu_s(server) - before, memory)


def _look_now(url: str, run: str) -> tuple[float, float]:
    store = open_store(url)
    began = time.monotonic()
    with store.read() as conn:
        progress_of(conn, run)
    took = time.monotonic() - began
    store.disconnect()
    return took, processes.resident_mb(os.getpid())


def _cpu_s(server: Cluster) -> float:
    """CPU seconds of the server and of the sessions that have ended (fields 14 to 17 of proc(5), stat)."""
    time.sleep(0.3)  # a session ends a moment after its client
    fields = (processes.PROC / str(server.process.pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
