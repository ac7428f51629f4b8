"""The clients of the workloads with many connections: calls a second, memory of the streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from tools.bench.figure import Figure, at_least, below
from tools.bench.labs import BenchLab, described, running
from tools.bench.processes import cpu_time, descendants
from vnuma.sqlserver.client.connect import connect
from vnuma.workloads.call_volume import workload as call_procedures
from vnuma.workloads.call_volume.callers import callers

DATABASE = "vnuma_bench"
ROWS = 10_000
CALLERS = 4
"""With two, a quarter of two cores is idle while they wait; eight interfere with each other."""


def clients(seconds: float, streams: int) -> Iterator[Figure]:
    """Both, on a lab of their own."""
    with running() as lab:
        with connect(lab.sql()) as connection:
            call_procedures.prepare(connection, DATABASE, ROWS)
        for form in ("noop", "seek"):
            yield _calls(lab, form, seconds)
        yield _memory(lab, streams)


def _calls(lab: BenchLab, form: str, seconds: float) -> Figure:
    """Remote procedure calls counted by the callers, between two looks at them."""
    with callers(lab.sql(), DATABASE) as crowd:
        crowd.connect(CALLERS, call_procedures.call(form), keys=ROWS, own_session=form == "noop")
        crowd.go()
        crowd.watch(seconds / 4, lambda: None)
        pids = descendants(os.getpid())
        used, used_by_lab = cpu_time(pids), cpu_time([lab.state.pid])
        began, before = time.monotonic(), crowd.count()
        crowd.watch(seconds, lambda: None)
        after, took = crowd.count(), time.monotonic() - began
        calls = after.calls - before.calls
        split = (
            f"a call took {cpu_time(pids).words(used, calls)} of the callers' CPU (user + kernel), "
            f"{cpu_time([lab.state.pid]).words(used_by_lab, calls)} of the lab's"
        )
        crowd.stop()
    busy = sum(after.busy_since(before)) / CALLERS
    what = f"call_volume, {form} calls from {CALLERS} processes, lab on the same cores"
    return at_least(what, calls / took, 20_000, "calls/s", 0).noting(
        f"{took:.1f} s; the callers used {busy:.0%} of a core each; {split}"
    )


def _memory(lab: BenchLab, streams: int) -> Figure:
    asked = {
        "server": described(lab.sql()),
        "database": DATABASE,
        "statement": "SELECT COUNT_BIG(*) AS n FROM sys.objects AS a CROSS JOIN sys.objects AS b",
        "rows": None,
        "streams": streams,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tools.bench.streams_client"],
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"the streams failed: {done.stderr.strip().splitlines()[-1]}")
    what = f"reporting_streams, {streams} streams, the client's peak resident memory"
    return below(what, int(done.stdout) / 1024, 300, "MB", digits=0)
