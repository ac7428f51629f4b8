"""One input read: vnuma answers, or raises its own error, within a deadline."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vnuma.errors import VnumaError

DEADLINE_S = 10
"""Of processor time, which a busy machine does not stretch."""

HANGS_AFTER_S = 60
"""By the clock."""

Attempt = Callable[[random.Random, Path], str]
"""Makes one mutated input, has vnuma read it, and returns what it was, for the report of a failure."""


class Failed(Exception):
    """vnuma raised something else than its own error; the message is the input."""


def tried(shown: str, read: Callable[[], object]) -> str:
    """What the input was. Raises Failed."""
    try:
        with _in_time():
            read()
    except VnumaError:
        pass
    except Exception as error:
        raise Failed(shown) from error
    return shown


@contextmanager
def _in_time() -> Iterator[None]:
    def late(number: int, _frame: object) -> None:
        limit = f"{DEADLINE_S} s of processor time" if number == signal.SIGPROF else f"{HANGS_AFTER_S} s"
        raise RuntimeError(f"not done within {limit}")

    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, late)
    signal.setitimer(signal.ITIMER_PROF, DEADLINE_S)
    signal.alarm(HANGS_AFTER_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
