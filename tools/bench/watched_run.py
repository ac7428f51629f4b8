"""A run while many watch its page, against the same run alone: are its cells any slower?

Both kinds of run take turns on one lab, in pairs whose order alternates. Watchers read the streams of a
`vnuma serve` beside the run, on the same cores.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from statistics import median
from threading import Event, Thread

from tools.bench import cells
from tools.bench.figure import Figure, spread
from tools.bench.labs import BenchLab, running
from tools.bench.serving import get, server, watch

_BEGINS_S = 120.0
"""Until a started run has its page."""

LIMIT = 1.1


def watched_run(watchers: int, blocks: int, pairs: int) -> Iterator[Figure]:
    """So many pairs of runs of two cells a block; each pair's ratio of median overheads of a cell."""
    alone: list[float] = []
    watched: list[float] = []
    with running(cells.scenario(1)) as lab:
        _overhead(lab, "first", 3, 0)  # makes the store, and what else only a first run makes
        for pair in range(pairs):
            for kind in (alone, watched) if pair % 2 else (watched, alone):
                looking = watchers if kind is watched else 0
                kind.append(_overhead(lab, f"{'watched' if looking else 'alone'}{pair}", blocks, looking))
    ratios = [with_them / without for with_them, without in zip(watched, alone, strict=True)]
    yield Figure(
        f"vnuma serve, {watchers} watchers of a run: its cells, against the same run alone",
        f"{median(ratios):.2f} x",
        peer=f"{spread(watched, unit='s')} against {spread(alone, unit='s')} a cell",
        target=f"< {LIMIT:g} x",
        verdict="met" if median(ratios) < LIMIT else "not met",
        note=f"{pairs} pairs of runs of {2 * blocks} cells: {spread(ratios)} x, all on the same cores",
    )


def _overhead(lab: BenchLab, name: str, blocks: int, watchers: int) -> float:
    """The median overhead of a cell of a run, which so many watch. RuntimeError if the run fails."""
    process = lab.run_study(cells.study(name, ["vm1"], blocks))
    try:
        with ExitStack() as watching:
            if watchers:
                address, _ = watching.enter_context(server(lab.folder / "vnuma.db"))
                watching.enter_context(_watchers(address, f"/runs/{name}.1", watchers))
            code = process.wait(timeout=cells.TIMEOUT_S)
    finally:
        cells.end(process)
    if code:
        raise RuntimeError(f"vnuma run ended with {code}:\n{lab.log.read_text(encoding='utf-8')[-2000:]}")
    return median(cell.overhead for cell in cells.cells_of(lab, name, lab.store))


@contextmanager
def _watchers(address: str, page: str, number: int) -> Iterator[None]:
    """So many who watch a page from its beginning, and read what they are sent."""
    deadline = time.monotonic() + _BEGINS_S
    while get(address, page) != 200:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{page} did not begin")
        time.sleep(0.2)
    over = Event()
    with ExitStack() as streams, selectors.DefaultSelector() as readable:
        for _ in range(number):
            connection = streams.enter_context(closing(watch(address, page)))
            assert connection.sock
            readable.register(connection.sock, selectors.EVENT_READ)
        reading = Thread(target=_read_all, args=(readable, over))
        reading.start()
        try:
            yield
        finally:
            over.set()
            reading.join()


def _read_all(readable: selectors.BaseSelector, over: Event) -> None:
    while not over.is_set():
        for key, _ in readable.select(timeout=0.5):
            if not key.fileobj.recv(1 << 16):  # type: ignore[union-attr]
                readable.unregister(key.fileobj)
