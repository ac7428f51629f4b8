"""A connection to PostgreSQL that fails when the server is silent. Imports psycopg, an extra."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, TypeVar, cast

import psycopg

from vnuma.store.postgresql import BEGIN_S

Answer = TypeVar("Answer")


class BoundedConnection(psycopg.Connection[Any]):
    """Fails when the server is silent for `silence_s`; None: waits as long as the work takes.

    Neither TCP nor libpq notices a link that is cut behind a local proxy, such as a mesh's: the proxy accepts
    what is sent, and no answer comes.
    """

    silence_s: float | None = BEGIN_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._made_in = os.getpid()

    def wait(self, gen: Generator[Any, Any, Answer], *args: Any, **kwargs: Any) -> Answer:
        """See psycopg. Raises OperationalError when the server was silent for too long."""
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, gen: Generator[Any, Any, Answer]) -> Generator[Any, Any, Answer]:
        """psycopg's conversation, which gets a false value for each tenth of a second of silence."""
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now = time.monotonic()
                if ready:
                    heard = now
                elif self.silence_s is not None and now - heard > self.silence_s:
                    self.close()
                    raise psycopg.OperationalError(f"silent for {self.silence_s:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as ended:
            return cast("Answer", ended.value)

    def __del__(self, *_: object) -> None:
        """Close an unused connection; in a forked child it is the parent's, and stays open."""
        if getattr(self, "_made_in", None) == os.getpid():
            with suppress(psycopg.Error):
                self.close()
