"""The scans as text, and their tables as rows."""

from __future__ import annotations

import pytest

from vnuma.sqlserver.database.dataset import ScanSpec
from vnuma.workloads.scan_aggregate.settings import ScanAggregate
from vnuma.workloads.scan_aggregate.workload import scan, scan_queries


@pytest.mark.parametrize(
    ("form", "read"), [("sparse", "CHECKSUM(id, amount)"), ("dense", "CHECKSUM(payload)")]
)
def test_a_form_reads_either_end_of_a_row_or_all_of_it(form: str, read: str) -> None:
    """Never a column less, and the whole table; the number of rows comes first."""
    query = scan(4, form, 2)

    assert query.sql == (
        f"SELECT COUNT_BIG(*) AS read_rows, SUM(CAST({read} AS bigint)) AS row_checksum "
        "FROM dbo.scan_4_mb OPTION (MAXDOP 2)"
    )
    assert (query.expected_rows, query.rows_from) == (4 * 512, "result")


def test_every_size_is_a_table_of_its_own() -> None:
    """A whole scan needs no filter, which a plan could turn into something else."""
    settings = ScanAggregate(name="scan_aggregate", sizes=(4, 16))
    spec = ScanSpec(sizes_mb=settings.sizes)

    assert [(table.name, spec.rows_of(table)) for table in spec.tables] == [
        ("scan_4_mb", 2048),
        ("scan_16_mb", 8192),
    ]
    assert [(query.size, query.form) for query in scan_queries(settings)] == [
        (4, "sparse"),
        (4, "dense"),
        (16, "sparse"),
        (16, "dense"),
    ]
