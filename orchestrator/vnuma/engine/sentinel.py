"""The drift sentinel: a short reference query on every boot, stored apart from what is measured.

It only raises an alarm. It runs inside the arm, so correcting times by it would remove the effect.
"""

from __future__ import annotations

from vnuma.engine.attempt import Attempt
from vnuma.engine.context import VmContext
from vnuma.sqlserver.odbc import pyodbc
from vnuma.sqlserver.timing import timed
from vnuma.store import attempts, facts
from vnuma.workloads.registry import sentinel

SCOPE = "sentinel"
EXECUTIONS = 3


def run_sentinel(context: VmContext, attempt: Attempt, connection: pyodbc.Connection) -> None:
    """One execution that is dropped, then three that are kept. Raises what a measurement raises."""
    study = context.study
    query = sentinel(study.workload, study.dataset.smaller_table_rows)
    with context.store.write() as write:
        attempts.set_step(write, attempt.id, context.token, "measure sentinel")
    times = [
        timed(
            connection,
            query.sql,
            expected_rows=query.expected_rows,
            rows_from=query.rows_from,
            timeout_s=study.workload.timeout_s,
        )
        for _ in range(1 + EXECUTIONS)
    ][1:]
    document = {
        "query": query.label,
        "elapsed_ms": [time.elapsed_ms for time in times],
        "cpu_ms": [time.cpu_ms for time in times],
        "client_ms": [time.client_ms for time in times],
    }
    with context.store.write() as write:
        facts.add_attempt_facts(write, attempt.id, context.token, SCOPE, document)
