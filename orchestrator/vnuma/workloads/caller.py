"""One caller: a process that calls a procedure without pause, and counts the answers.

Started by `caller_host`, to which it travels as text: it needs Python 3.9 and pyodbc alone. Orders come in
lines of JSON on standard input, answers go out likewise: the connection string, which holds a password, is
in no argument and no environment. When the input ends, so does the process, whatever it is doing.

    {"do": "connect", "string": ..., "call": "{CALL dbo.noop (?)}", "keys": 10000, "own_session": true}
    {"do": "go"}    {"do": "count"}    {"do": "stop"}
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from queue import SimpleQueue
from typing import Any

import pyodbc

pyodbc.pooling = False  # a closed connection has left the server

_KEYS = 997
"""Keys drawn in advance: a prime number, so that callers do not synchronise."""

_ANSWER_S = 10
_EVERY_ROW = 2**31 - 1
_STATE = re.compile(r"[0-9A-Z]{5}$")


@dataclass
class _State:
    """Shared state of the calling and the listening thread."""

    orders: SimpleQueue[dict[str, Any]] = field(default_factory=SimpleQueue)
    answering: threading.Lock = field(default_factory=threading.Lock)
    calls: int = 0
    stopped: bool = False

    def answer(self, kind: str, **values: object) -> None:
        """Write one line; two threads do."""
        line = json.dumps({"answer": kind, **values}) + "\n"
        with self.answering:
            sys.stdout.write(line)
            sys.stdout.flush()

    def fail(self, error: pyodbc.Error, *, lost: bool) -> None:
        """Report the driver's error, and whether the connection is gone."""
        parts = [str(part) for part in error.args[:2]]
        if len(parts) == 2 and _STATE.match(parts[1]) and not _STATE.match(parts[0]):
            parts.reverse()  # pyodbc's own errors have the text first
        sqlstate, text = parts if len(parts) == 2 else ("", str(error))
        self.answer("failed", sqlstate=sqlstate, text=text, lost=lost)

    def count(self, kind: str) -> None:
        """Report the number of answers so far, and this process's CPU time."""
        self.answer(kind, calls=self.calls, cpu_s=time.process_time(), at=time.monotonic())


def main() -> None:
    """Obey until the input ends."""
    state = _State()
    threading.Thread(target=_listen, args=(state,), name="orders", daemon=True).start()
    while True:
        order = state.orders.get()
        try:
            _work(state, order)
        except pyodbc.Error as error:
            state.fail(error, lost=False)
        except _WrongAnswerError as error:
            state.answer("failed", sqlstate="", text=str(error), lost=False)


class _WrongAnswerError(Exception):
    """A call returned the wrong result."""


def _listen(state: _State) -> None:
    """Report counts at once, while the other thread waits for the server, and pass other orders to it."""
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "count":
            state.count("count")
        else:
            state.stopped = order["do"] == "stop"
            state.orders.put(order)
    os._exit(1)  # the parent is gone: a call that waits for the server must not keep this process alive


def _work(state: _State, order: dict[str, Any]) -> None:
    """Connect, call once, wait for `go`, call until `stop`, and disconnect."""
    if order["do"] != "connect":
        return  # left over after a failure, or the `stop` that ended the calls
    connection = pyodbc.connect(order["string"], autocommit=True, timeout=int(order["login_timeout_s"]))
    cursor = connection.cursor()
    try:
        session = int(cursor.execute("SELECT @@SPID AS session_id").fetchval())
        calls = _calls(order["call"], int(order["keys"]))
        expected = session if order["own_session"] else None
        state.calls = 0
        _call(state, cursor, calls, expected)
        state.answer("ready", session=session)
        if state.orders.get()["do"] == "go":
            while not state.stopped:
                _call(state, cursor, calls, expected)
        state.count("stopped")
    except pyodbc.Error as error:
        with suppress(pyodbc.Error):  # pending results would keep the connection busy
            cursor.close()
        state.fail(error, lost=not _answers(connection))
    finally:
        connection.close()


def _answers(connection: pyodbc.Connection) -> bool:
    """Whether the connection still works: FreeTDS reports only "unknown error" for one that was cut."""
    try:
        connection.timeout = _ANSWER_S
        connection.cursor().execute("SELECT 1 AS one").fetchval()
    except pyodbc.Error:
        return False
    return True


def _calls(call: str, keys: int) -> Iterator[tuple[str, int]]:
    """An endless sequence of calls with keys from 1 to `keys`, built in advance to cost nothing while
    counting.
    """
    draw = random.Random()
    drawn = [draw.randint(1, keys) for _ in range(_KEYS)]
    return cycle([(call.replace("?", str(key)), key) for key in drawn])


def _call(
    state: _State, cursor: pyodbc.Cursor, calls: Iterator[tuple[str, int]], expected: int | None
) -> None:
    """One call, with its result checked and read to its end. Raises _WrongAnswerError.

    With an unread end the next call would first send an attention to the server.
    """
    call, key = next(calls)
    found = cursor.execute(call).fetchval()
    cursor.skip(_EVERY_ROW)  # msodbcsql loses an error after a row when the next result is requested first
    if found != (1 + key % 9 if expected is None else expected) or cursor.nextset():
        raise _WrongAnswerError(f"the call with {key} answered {found!r}")
    state.calls += 1


if __name__ == "__main__":
    main()
