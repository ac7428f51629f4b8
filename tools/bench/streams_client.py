"""Concurrent streams in a process of their own: `python -m tools.bench.streams_client`.

Standard input: a line of JSON with server, database, statement, rows and streams. Standard output: the peak
of this process's resident memory in KB.
"""

from __future__ import annotations

import json
import sys

from tools.bench.client import peak_kb
from vnuma.sqlserver.client.driver import discover
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.workloads.interface import Query
from vnuma.workloads.reporting_streams.streams import opened, run_streams


def main() -> None:
    """Run every stream once."""
    asked = json.loads(sys.stdin.readline())
    server = SqlServer(driver=discover(), **asked["server"])
    query = Query(asked["statement"], asked["rows"], "result", workload="bench", size=1, form="streams")
    with opened(server, asked["database"], asked["streams"]) as connections:
        run_streams(connections, query, 2, timeout_s=120)
    print(peak_kb())


if __name__ == "__main__":
    main()
