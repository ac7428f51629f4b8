"""The lab: how soon it is ready, what it holds, how fast it gives rows."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tools.bench import processes, tds
from tools.bench.drain import DATABASE, prepare_dataset
from tools.bench.figure import Figure, at_least, below, not_evaluated, spread
from tools.bench.labs import BenchLab, running
from tools.bench.loopback import loopback_seconds
from vnuma.workloads.cross_join.workload import cross_join


def ready(repeats: int) -> Iterator[Figure]:
    """From the start of the process until its `ready` line is read."""
    times = []
    for _ in range(repeats):
        with running() as lab:
            times.append(lab.ready_s)
    yield below("Lab, from start to ready", median(times), 1, "s").noting(
        f"{repeats} starts: {spread(times, unit='s')}"
    )


def memory(lab: BenchLab) -> Iterator[Figure]:
    """Generate the whole dataset of a study, then look at the process."""
    what = "Lab, resident memory, one VM, dataset generated"
    seconds = prepare_dataset(lab.sql())
    if not processes.available():
        yield not_evaluated(what, "< 100 MB", "Read from /proc, which only Linux has.")
        return
    yield below(what, processes.resident_mb(lab.state.pid), 100, "MB", digits=0).noting(
        f"113,443 and 121,317 rows, generated in {seconds:.1f} s"
    )


def rows(lab: BenchLab, size: int, repeats: int) -> Iterator[Figure]:
    """A cross join to a socket that only drains, beside bare bytes over the same loopback, by turns."""
    statement = cross_join(size, "client").sql
    pairs = size * size
    rates, shares = [], []
    with tds.connected(lab.sql(), DATABASE) as connection:
        tds.drain(connection, statement)
        for _ in range(repeats):
            answer = tds.drain(connection, statement)
            if answer.size < pairs:
                raise RuntimeError(f"the lab answered {answer.size} bytes instead of {pairs} rows")
            rates.append(pairs / answer.seconds / 1e6)
            shares.append(loopback_seconds(answer.size) / answer.seconds)
    yield (
        at_least(f"Lab, {size} x {size} rows to a socket that only drains", median(rates), 5, "Mrow/s", 1)
        .beside(f"{median(shares):.2f} x the rate of a process that only sends as many bytes")
        .noting(f"{repeats} runs: {spread(rates, 1, 'Mrow/s')}; {answer.size / pairs:.0f} bytes a row")
    )
