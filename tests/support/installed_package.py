"""A separate package with a workload, written only from docs/workloads/README.md."""

from __future__ import annotations

from pathlib import Path

MODULE = '''
from contextlib import contextmanager
from typing import ClassVar, Literal

from pydantic import Field

from vnuma.domain.workloads.metric import Metric
from vnuma.domain.workloads.settings import WorkloadSettings
from vnuma.sqlserver.database import ownership
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.query import run, value
from vnuma.workloads.interface import Reading, Workload


class Settings(WorkloadSettings):
    """Orders a second."""

    size_word: ClassVar[str] = "tellers"
    factors: ClassVar[frozenset[str]] = frozenset({"branch"})
    figures: ClassVar[tuple[Metric, ...]] = (Metric("orders on the books", "orders", "higher", "figures"),)

    name: Literal["tellers"]
    sizes: tuple[int, ...] = (1, 2)
    forms: tuple[str, ...] = ("orders",)
    branch: int = Field(default=1, ge=1)

    def metric(self, form: str) -> Metric:
        """Orders a second."""
        return Metric("orders", "orders/s", "higher")


def prepare(system):
    """The study's own database."""
    database = system.dataset.database
    with connect(system.server) as connection:
        there = ownership.require_ours(connection, database)
        if not there:
            ownership.create(connection, database)
    return {"database": database, "changed": not there}


@contextmanager
def bench(system):
    """A table for this boot."""
    with connect(system.server, system.dataset.database) as connection:

        def book(size, form):
            """Each teller takes an order, which counts as many as the branch has; a second passes."""
            for _ in range(size):
                run(connection, "INSERT INTO dbo.orders (branch) VALUES (?)", system.settings.branch)
            booked = value(connection, "SELECT COUNT(*) AS n FROM dbo.orders")
            made, books = float(size * system.settings.branch), {"orders on the books": booked}
            return Reading(elapsed_ms=1000.0, value=made, figures=books, rows=size)

        run(connection, "CREATE TABLE dbo.orders (branch int NOT NULL)")
        yield book
        run(connection, "DROP TABLE dbo.orders")


WORKLOAD = Workload(settings=Settings, prepare=prepare, bench=bench)
'''


def install(folder: Path, module: str = MODULE) -> None:
    """Lay the package into a folder, as an installer would; the caller puts that on the path."""
    (folder / "vnuma_tellers.py").write_text(module, encoding="utf-8")
    info = folder / "vnuma_tellers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vnuma-tellers\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[vnuma.workloads]\ntellers = vnuma_tellers:WORKLOAD\n", "utf-8")
