"""Which virtual NUMA topology should a SQL Server VM have, and how sure are we?"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vnuma.frames import RunTables

try:
    __version__ = version("vnuma")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"


def open(run: str = "latest", *, store: str | None = None) -> RunTables:
    """A stored run's tables for notebooks and scripts, by the run's name; see `vnuma.frames`.

    Raises InputError for an unknown run, StoreError when the store cannot be read.
    """
    from vnuma.frames import open_run

    return open_run(run, store=store)
