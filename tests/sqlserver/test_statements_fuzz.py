"""Whatever a server answers, a batch with an error never passes, and every failure is one of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyodbc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.sqlserver.support import driver_of
from tests.support import tds_server as tds
from vnuma.errors import SqlUnreachable, VnumaError
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.query import fetch, run, value
from vnuma.sqlserver.client.statistics_time import CHECK, timed
from vnuma.sqlserver.client.statistics_time import Statement as Asked

EXECUTION = "\n SQL Server Execution Times:\n   CPU time = 5 ms,  elapsed time = 6 ms."

KINDS: list[tds.Type] = ["int", "text", "moment", "variant"]


@dataclass(frozen=True)
class Statement:
    """What one statement of a batch answers: columns or none, rows, messages before, an error or none."""

    kinds: tuple[tds.Type, ...]
    rows: tuple[tuple[bool, ...], ...]
    says: bool
    fails: bool
    counts: bool

    def tokens(self, *, last: bool, inside: bool, timed: bool) -> list[bytes]:
        """As the server sends them."""
        out = [tds.message(0, "by the way", 0)] if self.says else []
        if self.kinds:
            out += [tds.columns(*self.kinds)]
            out += [tds.row(*zip(self.kinds, row, strict=True)) for row in self.rows]
        if self.fails:
            out += [tds.message(8134, "Divide by zero error encountered.", 16)]
        if timed and self.fails:
            out += [tds.message(3612, EXECUTION, 0)]
        count = len(self.rows) if self.counts and not self.fails else None
        more = not last or inside or (timed and not self.fails)
        out += [tds.done(more=more, failed=self.fails, count=count, inside=inside)]
        if timed and not self.fails:
            out += [tds.message(3612, EXECUTION, 0)]
            out += [tds.done()] if last and not inside else []
        return out


@dataclass(frozen=True)
class Batch:
    """Statements, perhaps in a procedure, and at which byte of which token it is cut, if it is."""

    statements: tuple[Statement, ...]
    inside: bool
    cut: tuple[int, int] | None

    @property
    def fails(self) -> bool:
        """Whether the client must learn of an error."""
        return self.cut is not None or any(one.fails for one in self.statements)

    def answer(self, *, timed: bool) -> bytes:
        """The whole response."""
        last = len(self.statements) - 1
        out = [
            token
            for i, one in enumerate(self.statements)
            for token in one.tokens(last=i == last, inside=self.inside, timed=timed)
        ]
        out += [tds.returned()] if self.inside else []
        if self.cut is None:
            return b"".join(out)
        token, byte = self.cut[0] % len(out), self.cut[1]
        # FreeTDS 1.3.17 ends its process (an assertion) when it is cut inside the description of a column.
        part = b"" if out[token].startswith(tds.COLUMNS) else out[token][: byte % len(out[token])]
        return b"".join(out[:token]) + part + tds.CUT

    def check(self) -> bytes:
        """@@ERROR and ROWCOUNT_BIG() afterwards: those of the last statement."""
        last = self.statements[-1]
        row = tds.whole_row(8134 if last.fails else 0, len(last.rows))
        return tds.columns("int", "int") + row + tds.done(count=1)


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    """Any statement."""
    kinds = tuple(draw(st.lists(st.sampled_from(KINDS), max_size=3)))
    row = st.tuples(*[st.booleans() for _ in kinds])
    rows = tuple(draw(st.lists(row, max_size=3))) if kinds else ()
    return Statement(kinds, rows, draw(st.booleans()), draw(st.booleans()), draw(st.booleans()))


BATCHES = st.builds(
    Batch,
    st.lists(statements(), min_size=1, max_size=4).map(tuple),
    st.booleans(),
    st.none() | st.tuples(st.integers(0, 20), st.just(0) | st.integers(0, 100)),
)
FAILS_FIRST = Batch(
    (
        Statement(("int",), ((False,),), says=False, fails=True, counts=False),
        Statement((), (), False, False, False),
    ),
    inside=False,
    cut=None,
)
"""An error after a row, then a statement that resets @@ERROR: msodbcsql discards both without a word."""
FUZZ = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


class Client:
    """A connection for each question."""

    def __init__(self, server: SqlServer) -> None:
        self._server = server

    def ask(self, question: Callable[[pyodbc.Connection], object]) -> VnumaError | None:
        """The error that a question ends with; None if it succeeds. Any other exception travels on."""
        with connect(self._server) as connection:
            try:
                question(connection)
            except VnumaError as error:
                return error
        return None


@pytest.fixture(scope="module")
def server() -> Iterator[tds.TdsServer]:
    """A server with scripted answers."""
    running = tds.TdsServer()
    yield running
    running.close()


@pytest.fixture(params=["freetds", "msodbcsql18"])
def client(request: pytest.FixtureRequest, server: tds.TdsServer) -> Client:
    """A client with each driver that is installed."""
    return Client(SqlServer("127.0.0.1", server.port, "sa", "x", driver_of(request.param), "no"))


PROCEDURE = (
    *(tds.columns("int"), tds.row(("int", True)), tds.done(more=True, count=1, inside=True)),
    *(tds.message(0, "half done", 0), tds.done(more=True, inside=True), tds.returned()),
)
"""What a procedure of two statements answers."""


@pytest.mark.parametrize("sent", range(len(PROCEDURE)))
def test_an_answer_that_ends_between_two_statements_is_a_lost_connection(
    server: tds.TdsServer, client: Client, sent: int
) -> None:
    """msodbcsql takes the end of a statement in a procedure for the end of all when nothing more comes."""
    server.answer = lambda text: b"".join(PROCEDURE[:sent]) + tds.CUT if text == "asked" else tds.done()

    for ask in (run, fetch):
        error = client.ask(lambda connection, ask=ask: ask(connection, "asked"))  # type: ignore[misc]
        assert isinstance(error, SqlUnreachable)


def test_rows_that_nobody_wants_may_be_of_any_type(server: tds.TdsServer, client: Client) -> None:
    """pyodbc has no Python value for datetimeoffset, and FreeTDS none for sql_variant."""
    values: list[tuple[tds.Type, bool]] = [("moment", True), ("variant", True)]
    result = tds.columns("moment", "variant") + tds.row(*values) + tds.done(more=True, count=1)
    number = tds.columns("int") + tds.whole_row(5) + tds.done(more=True, count=1)
    server.answer = lambda _text: number + result + tds.done()
    found: list[object] = []

    assert client.ask(lambda connection: run(connection, "asked")) is None
    assert client.ask(lambda connection: found.append(fetch(connection, "asked"))) is None
    assert found == [[(5,)]]


@FUZZ
@given(batch=BATCHES)
@pytest.mark.parametrize("ask", [run, fetch, value])
def test_a_batch_succeeds_only_without_an_error(
    server: tds.TdsServer, client: Client, ask: Callable[[pyodbc.Connection, str], object], batch: Batch
) -> None:
    """An error anywhere, or a cut, is raised as ours; without one, running it never fails."""
    server.answer = lambda text: batch.answer(timed=False) if text == "asked" else tds.done()

    error = client.ask(lambda connection: ask(connection, "asked"))

    if batch.fails:
        assert error is not None
    elif ask is run:
        assert error is None


@FUZZ
@example(batch=FAILS_FIRST, rows_from="rowcount", times_from="procedure", promised="one")
@given(
    batch=BATCHES,
    rows_from=st.sampled_from(["rowcount", "result", "none"]),
    times_from=st.sampled_from(["statement", "procedure"]),
    promised=st.sampled_from(["one", "any"]),
)
def test_a_timing_is_valid_only_without_an_error(
    server: tds.TdsServer, client: Client, batch: Batch, rows_from: str, times_from: str, promised: str
) -> None:
    """Whatever is promised of the batch, and whatever is said of it in the end."""

    def answer(text: str) -> bytes:
        if text == "asked":
            return batch.answer(timed=True)
        return batch.check() if text == CHECK else tds.done()

    server.answer = answer

    error = client.ask(
        lambda connection: timed(
            connection,
            Asked(
                "asked",
                rows_from=rows_from,  # type: ignore[arg-type]
                times=times_from,  # type: ignore[arg-type]
                statements=promised,  # type: ignore[arg-type]
            ),
            10,
        )
    )

    if batch.fails:
        assert error is not None
