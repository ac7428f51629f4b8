"""The drift sentinel: a short reference query on every boot, stored apart from the measurements.

It only raises an alarm. It runs inside the arm, so correcting times by it would remove the effect.
"""

from __future__ import annotations

from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.timing import timed
from vnuma.workloads.bench import Site
from vnuma.workloads.query import Query

SCOPE = "sentinel"
EXECUTIONS = 3


def run_sentinel(site: Site, query: Query | None) -> None:
    """Run it once discarded, then three times recorded; nothing for a workload without a sentinel.

    Raises what a measurement raises.
    """
    if query is None:
        return
    site.say("sentinel")
    with connect(site.server, site.dataset.database) as connection:
        times = [timed(connection, query, site.settings.timeout_s) for _ in range(1 + EXECUTIONS)][1:]
    site.record(
        SCOPE,
        {
            "query": f"{query.workload} {query.size}, {query.form}",
            "elapsed_ms": [time.elapsed_ms for time in times],
            "cpu_ms": [time.cpu_ms for time in times],
            "client_ms": [time.client_ms for time in times],
        },
    )
