"""A run whose store is PostgreSQL against the same run on SQLite: what a cell costs on each.

Both kinds of run take turns on one lab, in pairs whose order alternates.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import pytest

from tests.support import postgresql
from tools.bench import cells
from tools.bench.figure import Figure, not_evaluated, spread
from tools.bench.labs import running

LIMIT = 1.2


def stores(blocks: int, pairs: int) -> Iterator[Figure]:
    """So many pairs of runs of two cells a block; each pair's ratio of median overheads of a cell."""
    what, target = "A cell of a run on PostgreSQL, against SQLite", f"< {LIMIT:g} x"
    try:
        server = postgresql.start(postgresql.find_binaries())
    except pytest.skip.Exception as missing:
        yield not_evaluated(what, target, str(missing))
        return
    try:
        with running(cells.scenario(1)) as lab:
            urls = {"sqlite": lab.store, "postgresql": server.new_store()}
            named = {kind: {"VNUMA_STORE": url} for kind, url in urls.items()}
            took: dict[str, list[float]] = {kind: [] for kind in urls}
            for kind, store in named.items():
                cells.median_overhead(lab, store, f"first-{kind}", 3)  # what only a first run does
            for pair in range(pairs):
                for kind in sorted(named, reverse=bool(pair % 2)):
                    took[kind].append(cells.median_overhead(lab, named[kind], f"{kind}{pair}", blocks))
    finally:
        server.stop()
    ratios = [here / there for here, there in zip(took["postgresql"], took["sqlite"], strict=True)]
    yield Figure(
        what,
        f"{median(ratios):.2f} x",
        peer=f"{spread(took['postgresql'], unit='s')} against {spread(took['sqlite'], unit='s')} a cell",
        target=target,
        verdict="met" if median(ratios) < LIMIT else "not met",
        note=f"{pairs} pairs of runs of {2 * blocks} cells: {spread(ratios)} x; server on the same machine, "
        "Unix socket, fsync off",
    )
