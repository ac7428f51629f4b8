"""Every workload by its name, registered here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vnuma.domain.study import CrossJoin
from vnuma.workloads import cross_join
from vnuma.workloads.query import Metric, Query

__all__ = ["WORKLOADS", "Metric", "Query", "Workload", "queries", "refuse_too_large", "sentinel"]


@dataclass(frozen=True)
class Workload:
    """What a workload is called and what its figure means."""

    name: str
    metric: Metric


WORKLOADS: Mapping[str, Workload] = {
    cross_join.NAME: Workload(cross_join.NAME, cross_join.METRIC),
}


def queries(workload: CrossJoin) -> tuple[Query, ...]:
    """Every query that one boot runs for a study's workload, in order."""
    return cross_join.cross_join_queries(workload)


def sentinel(workload: CrossJoin, smaller_table_rows: int | None) -> Query:
    """The short reference query of every boot."""
    return cross_join.sentinel(workload, smaller_table_rows)


def refuse_too_large(workload: CrossJoin, smaller_table_rows: int) -> None:
    """Refuse sizes that the dataset cannot give. Raises InputError."""
    cross_join.refuse_too_large(workload, smaller_table_rows)
