"""All callers of one boot: begun together, counted together, ended together."""

from __future__ import annotations

import selectors
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from vnuma.errors import ConnectionDropped, MeasurementFailed, SqlUnreachable, VnumaError
from vnuma.sqlserver.connect import SqlServer, connection_string
from vnuma.sqlserver.failures import translate
from vnuma.sqlserver.odbc import pyodbc
from vnuma.workloads.caller_process import Answer, CallerProcess

LOGIN_S = 30.0
ANSWER_S = 30.0
"""For an order that takes no time; a server that hangs is noticed by it."""

_SLICE_S = 0.5


@dataclass(frozen=True)
class Count:
    """What the callers have counted, all at about one time: calls together, and CPU of each.

    `cpu` holds for every caller the CPU seconds it has used and the time of its clock then.
    """

    calls: int
    cpu: tuple[tuple[float, float], ...]

    def busy_since(self, before: Count) -> tuple[float, ...]:
        """The share of a CPU that each caller used in between, 0 to 1."""
        pairs = zip(before.cpu, self.cpu, strict=True)
        return tuple((used - used0) / (at - at0) if at > at0 else 0.0 for (used0, at0), (used, at) in pairs)


class Callers:
    """The callers' processes; more are started as more connections are asked for."""

    def __init__(self, server: SqlServer, database: str, errors: IO[bytes]) -> None:
        self._server, self._database, self._errors = server, database, errors
        self._all: list[CallerProcess] = []
        self._active: list[CallerProcess] = []

    def connect(self, connections: int, call: str, *, keys: int, own_session: bool) -> list[int]:
        """Connect so many; each calls once and then waits. Returns their sessions."""
        while len(self._all) < connections:
            self._all.append(CallerProcess(self._errors))
        self._active = self._all[:connections]
        string = connection_string(self._server, self._database)
        self._order(
            "connect", string=string, call=call, keys=keys, own_session=own_session, login_timeout_s=LOGIN_S
        )
        return [int(str(answer["session"])) for answer in self._answers("ready", LOGIN_S + ANSWER_S)]

    def go(self) -> None:
        """Let all of them call."""
        self._order("go")

    def watch(self, seconds: float, between: Callable[[], None]) -> None:
        """Let time pass; a caller that fails ends it at once. `between` is asked every half second."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for caller, answer in self._come(min(left, _SLICE_S)):
                raise self._unexpected(caller, answer)
            between()

    def count(self) -> Count:
        """What every caller has counted by now."""
        self._order("count")
        return _count(self._answers("count", ANSWER_S))

    def stop(self) -> Count:
        """Let all finish their call and leave the server; the final count."""
        self._order("stop")
        found = _count(self._answers("stopped", ANSWER_S))
        self._active = []
        return found

    def end(self) -> None:
        """End every process."""
        for caller in self._all:
            caller.end()
        self._all, self._active = [], []

    def _order(self, do: str, **values: object) -> None:
        for caller in self._active:
            caller.order(do, **values)

    def _answers(self, kind: str, seconds: float) -> Sequence[Answer]:
        """One answer of that kind from each active caller, in their order."""
        found: dict[CallerProcess, Answer] = {}
        until = time.monotonic() + seconds
        while len(found) < len(self._active):
            left = until - time.monotonic()
            if left <= 0:
                raise MeasurementFailed(
                    f"{len(self._active) - len(found)} of {len(self._active)} callers did not answer within "
                    f"{seconds:g} s.",
                    fix="Is the server or this machine overloaded, or the guest frozen?",
                )
            for caller, answer in self._come(left):
                if answer["answer"] != kind:
                    raise self._unexpected(caller, answer)
                found[caller] = answer
        return [found[caller] for caller in self._active]

    def _come(self, seconds: float) -> Iterator[tuple[CallerProcess, Answer]]:
        with selectors.DefaultSelector() as selector:
            for caller in self._active:
                selector.register(caller, selectors.EVENT_READ, caller)
            for key, _events in selector.select(seconds):
                for answer in key.data.read():
                    yield key.data, answer

    def _unexpected(self, caller: CallerProcess, answer: Answer) -> VnumaError:
        """Why a caller failed, in words."""
        text = str(answer.get("text", f"it answered {answer['answer']}"))
        number = 1 + self._active.index(caller)
        who = f"Caller {number} of {len(self._active)}"
        error = translate(pyodbc.Error(str(answer.get("sqlstate", "")), text), self._server.where)
        if answer.get("lost") or isinstance(error, SqlUnreachable):
            return ConnectionDropped(
                f"{who} lost its connection: {error.what}",
                fix="Did the guest or SQL Server restart? See its error log.",
            )
        what = error.what if answer.get("sqlstate") else text
        return MeasurementFailed(f"{who} failed: {what}", fix=error.fix if answer.get("sqlstate") else None)


@contextmanager
def callers(server: SqlServer, database: str) -> Iterator[Callers]:
    """Callers for the duration of a `with`: no process outlives it."""
    with tempfile.TemporaryFile() as errors:
        crowd = Callers(server, database, errors)
        try:
            yield crowd
        finally:
            crowd.end()


def _count(answers: Sequence[Answer]) -> Count:
    return Count(
        sum(int(str(answer["calls"])) for answer in answers),
        tuple((float(str(answer["cpu_s"])), float(str(answer["at"]))) for answer in answers),
    )
