"""Small stores to test with: a run with leased VMs, their baselines saved and their cells planned."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from vnuma.domain.study.order import PlannedCell
from vnuma.store import cells, leases, runs
from vnuma.store.open import Store
from vnuma.store.rows import Claim, Run, Sample, Vm

START = datetime(2026, 11, 17, 20, 45, 10, 250, tzinfo=UTC)

TWICE = 2


@dataclass(frozen=True)
class Leased:
    """A VM of a run and the token with which it may be written."""

    run: Run
    vm: Vm
    token: int


def new_run(store: Store, study: str = "quick") -> Run:
    """A planned run of a study."""
    with store.write() as conn:
        return runs.create_run(conn, runs.save_study(conn, study, f"name: {study}\n"), seed=7)


def new_vm(
    store: Store,
    run: Run | None = None,
    *,
    key: str = "vc/1",
    name: str = "sql16",
    host: str = "esx01",
    arms: int = 0,
    blocks: int = 1,
    site: str | None = None,
) -> Leased:
    """A VM, leased, with its baseline saved and `arms` x `blocks` cells in order."""
    run = run or new_run(store)
    with store.write() as conn:
        path = f"/DC/vm/{name}"
        vm = leases.add_vm(conn, run.id, vm_key=key, name=name, path=path, esxi_host=host, site=site)
        token = leases.take_lease(conn, key, run.id, "ops@ctl1")
        cells.save(conn, vm.id, token, {"numCPUs": 16})
        plan = [(block, arm) for block in range(blocks) for arm in range(arms)]
        cells.add_cells(
            conn,
            vm.id,
            [PlannedCell(place, block, f"arm{arm}", f"arm{arm}") for place, (block, arm) in enumerate(plan)],
        )
    return Leased(run, vm, token)


def claim(store: Store, leased: Leased, most: int = TWICE) -> Claim:
    """Claim the VM's next cell; there must be one."""
    with store.write() as conn:
        got = cells.claim_next(conn, leased.vm.id, leased.token, most, exclusive_host=True)
    assert isinstance(got, Claim)
    return got


def samples(number: int, *, first: int = 1, warmup: bool = False) -> list[Sample]:
    """Measured samples, a second apart, each with its own numbers."""
    return [
        Sample(
            workload="cross_join",
            size=2000,
            form="rows",
            iteration=iteration,
            warmup=warmup,
            at=START + timedelta(seconds=iteration),
            cpu_ms=100.0 + iteration,
            elapsed_ms=200.0 + iteration,
            client_ms=200.5 + iteration,
            rows=4_000_000,
            waits={"ASYNC_NETWORK_IO": {"tasks": iteration}},
        )
        for iteration in range(first, first + number)
    ]
