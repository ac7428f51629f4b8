"""A run's tables for notebooks and scripts: `vnuma.open("quick.1").samples()`.

The tables are those of `vnuma results --format csv`, made by the same code; docs/reference/columns.md
describes each column.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vnuma.engine.access.places import store_url
from vnuma.errors import InputError, require_packages
from vnuma.report.archive.raw import SAMPLES, sample_table, table_of
from vnuma.report.archive.read import is_archive, open_archive
from vnuma.report.export.results import document
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.tables.csv_export import ALL, TABLES
from vnuma.store.open import Store, open_store

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class RunTables:
    """One run, read once and analysed. A missing value is NaN or null with a reason, never zero."""

    def __init__(self, store: Store, loaded: LoadedRun) -> None:
        self._store, self._loaded = store, loaded

    def __repr__(self) -> str:
        return f"<vnuma run {self._loaded.label}{f', simulated: {self.simulated}' if self.simulated else ''}>"

    @property
    def name(self) -> str:
        """Its name in `vnuma status`: quick.1."""
        return self._loaded.run.name

    @property
    def simulated(self) -> str | None:
        """The lab's scenario that all figures come from; None: from real machines."""
        return self._loaded.simulated

    def document(self) -> dict[str, Any]:
        """The whole result, as in `vnuma results --format json` (docs/results.schema.json)."""
        return document(self._loaded)

    def arrow(self, table: str) -> pa.Table:
        """A table by its name: samples, results, figures or waits.

        Raises InputError for another name, EnvironmentProblem without pyarrow.
        """
        if table == SAMPLES:
            return sample_table(self._store, self._loaded)
        if table not in TABLES:
            names = ", ".join([SAMPLES, *TABLES])
            raise InputError(f"{self.name} has no table {table!r}.", fix=f"Use one of {names}.")
        chosen = TABLES[table]
        return table_of(chosen.columns, [[dict(row) for row in chosen.rows(self._loaded)]])

    def samples(self) -> pd.DataFrame:
        """Every iteration, in ms, including warm-ups and attempts that did not count.

        Analysed are those with `attempt_outcome` valid, `warmup` False and no `reason`.
        """
        return self._frame(SAMPLES)

    def results(self) -> pd.DataFrame:
        """Medians and differences: a row for each VM, form, metric, size and arm."""
        return self._frame("results")

    def verdicts(self) -> pd.DataFrame:
        """The verdicts: a row for each VM and arm, over all sizes, of the primary form and metric."""
        rows = self.results()
        return rows[rows["primary"] & (rows["size"] == ALL)].reset_index(drop=True)

    def figures(self) -> pd.DataFrame:
        """The workload's other figures: a row for each VM, form, size, arm and figure."""
        return self._frame("figures")

    def waits(self) -> pd.DataFrame:
        """Shares of wait types, in %: a row for each VM, form, arm and type."""
        return self._frame("waits")

    def _frame(self, table: str) -> pd.DataFrame:
        require_packages("A frame, unlike run.arrow(name),", "pandas")
        return self.arrow(table).to_pandas()


def open_run(run: str = "latest", *, store: str | None = None) -> RunTables:
    """A run by name or `latest`, from a store's URL (VNUMA_STORE, else the default); or from its archive.

    Raises InputError for an unknown run or an odd archive, StoreError when the store cannot be read.
    """
    if is_archive(run):
        opened, run = open_archive(Path(run))
    else:
        opened = open_store(store_url(store), create=False)
    return RunTables(opened, load_run(opened, run))
