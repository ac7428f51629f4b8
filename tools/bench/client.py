"""The product's own way to time a statement, in a process of its own: `python -m tools.bench.client`.

Standard input: a line of JSON that describes server, statement and rows, then one line for each
execution. Standard output: "ready", then a line for each: nanoseconds, nanoseconds of this process's
CPU, rows; at the end the peak of its resident memory in KB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.driver import discover
from vnuma.sqlserver.client.statistics_time import Statement, timed


def main() -> None:
    """Serve executions until standard input ends."""
    asked = json.loads(sys.stdin.readline())
    server = SqlServer(driver=discover(asked["driver"]), **asked["server"])
    with connect(server, asked["database"]) as connection:
        statement = Statement(asked["statement"], asked["rows"], "rowcount", statements="one")
        print("ready", flush=True)
        while sys.stdin.readline():
            start, cpu = time.perf_counter_ns(), time.process_time_ns()
            timing = timed(connection, statement, 600)
            took, used = time.perf_counter_ns() - start, time.process_time_ns() - cpu
            print(took, used, timing.rows, flush=True)
    print(peak_kb(), flush=True)


def peak_kb() -> int:
    """This program's own peak; getrusage includes its parent's before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(
            line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM")
        )
        return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
