"""Draining a large result: the product's timing function against a bare C loop over the same driver."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tools.bench.figure import Figure, limited, not_evaluated, spread
from tools.bench.labs import running, sql_server
from vnuma.errors import DriverMissing
from vnuma.sqlserver.client.connect import SqlServer, connect, connection_string, driver_files, install
from vnuma.sqlserver.client.driver import DriverKind
from vnuma.sqlserver.database import dataset
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.workloads.cross_join.workload import cross_join

DRIVERS: tuple[DriverKind, ...] = ("freetds", "msodbcsql18")
DATABASE = DatasetSpec().database
ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = Path(__file__).with_name("drain.c")
NEEDS = "Needs a C compiler and unixODBC's headers: apt install gcc unixodbc-dev."


@dataclass(frozen=True)
class Took:
    """Seconds of one execution, and this client's CPU seconds."""

    wall: float
    cpu: float


class Drainer:
    """A process that drains a statement on request."""

    def __init__(self, process: subprocess.Popen[str], first: list[str]) -> None:
        self._process = process
        self._tell("\n".join(first))
        answer = self._read()
        if answer != "ready":
            raise RuntimeError(f"a client of the benchmark said {answer!r} instead of ready")

    def drain(self, rows: int) -> Took:
        """One execution. Raises RuntimeError for another number of rows."""
        self._tell("go")
        wall, cpu, got = map(int, self._read().split())
        if got != rows:
            raise RuntimeError(f"a client of the benchmark drained {got} rows instead of {rows}")
        return Took(wall / 1e9, cpu / 1e9)

    def end(self) -> str:
        """Close its input; returns its last words."""
        out, _ = self._process.communicate(timeout=60)
        return out.strip()

    def _tell(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise RuntimeError("a client of the benchmark ended; see above why")
        return answer


def drain(size: int, repeats: int) -> Iterator[Figure]:
    """With each driver that is installed."""
    with running() as lab:
        with connect(sql_server(lab)) as connection:
            dataset.prepare(connection, DatasetSpec())
        for kind in DRIVERS:
            what = f"Draining {size} x {size} rows, {kind}: `timed` against a bare C loop"
            try:
                server = sql_server(lab, kind)
            except DriverMissing as error:
                yield not_evaluated(what, "within 10 %", error.what)
            else:
                yield from _drained(what, server, size, repeats)


def _drained(what: str, server: SqlServer, size: int, repeats: int) -> Iterator[Figure]:
    """`timed` and the C loop in turns, with alternating order; medians, and the ratio of each pair."""
    query, rows = cross_join(size, "client"), size * size
    with ExitStack() as stack:
        ours = stack.enter_context(_ours(server, query.sql, rows))
        program, why = _compiled(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        bare = stack.enter_context(_bare(program, server, query.sql)) if program else None
        times: dict[Drainer, list[Took]] = {client: [] for client in (ours, bare) if client}
        for _ in range(repeats + 1):  # the first of each is not counted
            for client in reversed(list(times)) if len(times[ours]) % 2 else list(times):
                times[client].append(client.drain(rows))
        peak = int(ours.end()) / 1024
        mine = times[ours][1:]
        if bare:
            yield _compared(what, mine, times[bare][1:], str(server.driver))
        else:
            yield not_evaluated(what, "within 10 %", why)
    rate = rows / median(took.wall for took in mine) / 1e6
    yield Figure("The same, rows a second", f"{rate:.2f} Mrow/s", note=f"{repeats} runs, {server.driver}")
    yield limited("The same, the client's peak resident memory", peak, 150, "MB", digits=0)


def _compared(what: str, ours: list[Took], bare: list[Took], driver: str) -> Figure:
    """Based on the median of the pairs' ratios, since other load affects both of a pair."""
    ratios = [a.wall / b.wall for a, b in zip(ours, bare, strict=True)]
    off = (median(ratios) - 1) * 100
    mine, other = median(took.wall for took in ours), median(took.wall for took in bare)
    cpu = median(took.cpu for took in ours) / median(took.cpu for took in bare)
    return Figure(
        what,
        f"{off:+.1f} %",
        peer=f"{mine:.2f} s against {other:.2f} s; pairs: {spread(ratios)} x; CPU of the client: {cpu:.2f} x",
        target="within 10 %",
        verdict="met" if off <= 10 else "not met",
        note=f"{len(ours)} pairs, {driver}",
    )


def _compiled(folder: Path) -> tuple[Path | None, str]:
    """The C loop's program, or why it is missing."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None, f"There is no cc. {NEEDS}"
    program = folder / "drain"
    done = subprocess.run(
        [compiler, "-O2", "-Wall", "-o", str(program), str(SOURCE), "-lodbc"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if "error" in line), "cc failed")
        return None, f"drain.c could not be compiled ({reason.split('error: ')[-1].strip()}). {NEEDS}"
    return program, ""


@contextmanager
def _ours(server: SqlServer, statement: str, rows: int) -> Iterator[Drainer]:
    what = {"database": DATABASE, "statement": statement, "rows": rows}
    to = {name: getattr(server, name) for name in ("host", "port", "user", "password", "ca_file")}
    asked = {"server": to, "driver": server.driver.name, **what}
    with _process([sys.executable, "-m", "tools.bench.client"]) as process:
        yield Drainer(process, [json.dumps(asked)])


@contextmanager
def _bare(program: Path, server: SqlServer, statement: str) -> Iterator[Drainer]:
    install(*driver_files(server))  # the program inherits their location
    with _process([str(program)]) as process:
        yield Drainer(process, [connection_string(server, DATABASE), statement])


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
