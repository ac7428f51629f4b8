"""The duration of a run's analysis and the size of its page, in a process of its own."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, insert

from tools.bench.figure import Figure, below
from vnuma.domain.study.order import plan_cells
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.report.model.model import load_run
from vnuma.report.page.render import page_text
from vnuma.store import cells, leases, runs, tables
from vnuma.store.open import default_url, open_store
from vnuma.store.rows import RunState

STUDY = """\
name: bench
vms: [{vms}]
vcpus: 16
reference: 1x16
arms: [1x16, 2x8, 4x4, 8x2, 16x1]
design: {{blocks: 8, seed: 7, iterations: {iterations}}}
workload: {{sizes: [500, 1000, 2000, 3000], forms: [client, server]}}
"""
MANY_VMS, MANY_ITERATIONS = 53, 50
START = datetime(2026, 11, 17, tzinfo=UTC)
BOOT_SD, RUN_SD = 0.005, 0.003


def analysis(*, whole: bool) -> Iterator[Figure]:
    """A study of 40 boots and its page; with `whole`, a run of a million samples too."""
    seconds, _, drawing, page = _measured(vm_count=1, iterations=3, page=True)
    yield below("Reading and analysing 48 cells of 5 arms and 4 sizes", seconds, 3, "s").noting(
        "two forms, three metrics; planning simulated where an arm is undecided"
    )
    yield below("Its page", page / 1e6, 3, "MB").noting(f"drawn in {drawing:.1f} s")
    if whole:
        samples = MANY_VMS * 48 * 8 * MANY_ITERATIONS
        seconds, memory, *_ = _measured(vm_count=MANY_VMS, iterations=MANY_ITERATIONS, page=False)
        yield below(f"The same of {samples:,} samples, {MANY_VMS} VMs", seconds, 20, "s", digits=1)
        yield below("The same, peak resident memory", memory, 1000, "MB", digits=0)


def _measured(*, vm_count: int, iterations: int, page: bool) -> tuple[float, ...]:
    """Seconds to read and analyse, peak MB, seconds to draw the page, and its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        url = default_url(Path(folder))
        _write(url, vm_count, iterations)
        command = [sys.executable, "-m", "tools.bench.analysis", url, "page" if page else "no page"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return tuple(map(float, done.stdout.split()))


def _write(url: str, vm_count: int, iterations: int) -> None:
    """Write a finished run with known noise directly into its tables."""
    names = [f"vm{number:02}" for number in range(1, vm_count + 1)]
    text = STUDY.format(vms=", ".join(names), iterations=iterations)
    study = parse_study(text, "bench.yml")
    generator = np.random.default_rng(1)
    with open_store(url).write() as conn:
        run = runs.create_run(conn, runs.save_study(conn, study.name, text), seed=7, simulated="bench")
        for index, name in enumerate(names):
            vm = leases.add_vm(conn, run.id, vm_key=name, name=name, path=f"/{name}", esxi_host="esx01")
            planned = plan_cells(study, index)
            cells.add_cells(conn, vm.id, planned)
            for cell in (item for item in cells.cells_of_run(conn, run.id) if item.vm_id == vm.id):
                _boot(conn, study, cell.id, iterations, generator)
        runs.set_run_state(conn, run.id, RunState.FINISHED)


def _boot(
    conn: Connection, study: Study, cell_id: int, iterations: int, generator: np.random.Generator
) -> None:
    conn.execute(tables.cell.update().where(tables.cell.c.id == cell_id).values(state="valid"))
    attempt = conn.execute(
        insert(tables.attempt)
        .values(cell_id=cell_id, number=1, token=1, started_at=START, ended_at=START, outcome="valid")
        .returning(tables.attempt.c.id)
    ).scalar_one()
    boot = float(np.exp(generator.normal(0.0, BOOT_SD)))
    rows = []
    for size in study.workload.sizes:
        for form in study.workload.forms:
            for number, noise in enumerate(np.exp(generator.normal(0.0, RUN_SD, iterations)), start=1):
                ms = 0.02 * size**2 * boot * float(noise)
                rows.append(_sample(attempt, size, form, number, ms))
    conn.execute(insert(tables.sample), rows)


def _sample(attempt: int, size: int, form: str, number: int, ms: float) -> dict[str, object]:
    return {
        "attempt_id": attempt,
        "workload": "cross_join",
        "size": size,
        "form": form,
        "iteration": number,
        "warmup": False,
        "outcome": "measured",
        "cpu_ms": ms * 0.9,
        "elapsed_ms": ms,
        "client_ms": ms + 2,
        "rows": size * size,
        "waits_json": {"ASYNC_NETWORK_IO": {"tasks": 9, "wait_ms": round(ms / 2), "signal_ms": 0}},
        "at": START + timedelta(seconds=number),
    }


def _child(url: str, wanted: str) -> None:
    """Print the seconds of reading, this process's peak MB, the seconds of drawing, and the page's bytes."""
    store = open_store(url, create=False)
    start = time.perf_counter()
    loaded = load_run(store, "latest")
    read = time.perf_counter()
    page = len(page_text(loaded).encode()) if wanted == "page" else 0
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(read - start, memory, time.perf_counter() - read, page)


if __name__ == "__main__":
    _child(*sys.argv[1:])
