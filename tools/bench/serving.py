"""`vnuma serve` under watchers: how long a page takes, and what memory and processor the server uses."""

from __future__ import annotations

import http.client
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.report.build import Story, build, study_text
from tests.support.stores import new_store
from tools.bench.figure import Figure, below, spread, untargeted
from tools.bench.processes import cpu_time, resident_mb
from vnuma.store.rows import RunState

_START_S = 120.0


def serving(watchers: int, runs: int, asked: int, seconds: float) -> Iterator[Figure]:
    """So many watchers of so many runs, each page asked for so often, then watched for a while."""
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-") as folder:
        names = _store(Path(folder) / "vnuma.db", runs)
        with server(Path(folder) / "vnuma.db") as (address, pid), ExitStack() as watching:
            first = [_timed_ms(address, page) for page in names]  # each is analysed once
            for number in range(watchers):
                watching.callback(watch(address, names[number % len(names)]).close)
            pages = [_timed_ms(address, page) for _ in range(asked) for page in ("/", *names)]
            bare = [_timed_ms(address, "/static/serve.js") for _ in range(asked * len(names))]
            before, began = cpu_time([pid]), time.monotonic()
            time.sleep(seconds)
            after, passed = cpu_time([pid]), time.monotonic() - began
            memory = resident_mb(pid)
    what = f"vnuma serve, {watchers} watchers of {runs} runs"
    ratio = statistics.median(pages) / statistics.median(bare)
    yield below(f"{what}: page, 95% of requests", _high(pages), 200, "ms", 0).beside(
        f"{ratio:.1f} x a file of 2 kB from the same server: {spread(pages, 1)} against {spread(bare, 1)} ms"
    )
    yield below(f"{what}: memory", memory, 200, "MB", 0)
    used = (after.user + after.kernel - before.user - before.kernel) / passed * 100
    yield untargeted(f"{what}: processor while nothing changes", f"{used:.1f} % of one")
    yield untargeted("vnuma serve: a run's page, analysed", spread(first, 0, "ms"))


def _store(path: Path, runs: int) -> list[str]:
    """A store with runs that have begun; the paths of their pages."""
    store = new_store(path)
    for number in range(runs):
        text = study_text(vms=f"sql{number}", blocks=8, forms="client")
        build(store, Story(text=text, stop_after=40, state=RunState.RUNNING))
    return [f"/runs/quick.{number}" for number in range(1, runs + 1)]


@contextmanager
def server(store: Path) -> Iterator[tuple[str, int]]:
    """`vnuma serve` of that store: its address and process."""
    command = [sys.executable, "-m", "vnuma", "serve", "--port", "0", "--store", f"sqlite:///{store}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        if not select.select([process.stdout], [], [], _START_S)[0]:
            raise RuntimeError("vnuma serve did not start")
        said = process.stdout.readline()
        if " at http://" not in said:
            raise RuntimeError(f"vnuma serve did not start: {said}")
        yield said.partition(" at http://")[2].partition("/")[0], process.pid
    finally:
        process.terminate()
        process.wait()


def watch(address: str, page: str) -> http.client.HTTPConnection:
    """A connection that gets the changes of a page."""
    connection = _connection(address)
    connection.request("GET", f"/events?page={page}")
    connection.getresponse().readline()
    return connection


def get(address: str, page: str) -> int:
    """Ask for a page and read it; the status."""
    connection = _connection(address)
    connection.request("GET", page)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def _timed_ms(address: str, page: str) -> float:
    began = time.perf_counter()
    status = get(address, page)
    if status != 200:
        raise RuntimeError(f"{page}: {status}")
    return (time.perf_counter() - began) * 1000


def _connection(address: str) -> http.client.HTTPConnection:
    parts = urlsplit(f"//{address}")
    assert parts.hostname
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)


def _high(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
