"""One input read: vnuma answers, or raises its own error, within a deadline."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vnuma.errors import VnumaError

DEADLINE_S = 10

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
    def late(_number: int, _frame: object) -> None:
        raise RuntimeError(f"not done within {DEADLINE_S} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(DEADLINE_S)
    try:
        yield
    finally:
        signal.alarm(0)
