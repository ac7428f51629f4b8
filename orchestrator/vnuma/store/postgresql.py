"""The engine of a store on PostgreSQL, with waiting for a server that restarts."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sqlalchemy import Connection, Engine, NullPool, create_engine
from sqlalchemy.exc import OperationalError

from vnuma.errors import StoreError
from vnuma.store.encryption import encryption
from vnuma.store.place import Place
from vnuma.store.translate import is_away

LOCK_WAIT_S = 30
"""How long a unit of work waits for another's lock before failing, in seconds."""

READ_ONLY = "-c default_transaction_read_only=on"

_CONNECT_WAIT_S = 10


def postgresql_engine(place: Place, options: str = "") -> Engine:
    """An engine without a pool; `options` are server options. Raises StoreError without driver or TLS."""
    try:
        from psycopg import pq  # noqa: PLC0415 - an extra: SQLite's users need not have it
    except ImportError as error:
        raise StoreError(
            f"The driver for PostgreSQL is missing, so {place} cannot be opened ({error}).",
            fix=f"{sys.executable} -m pip install 'psycopg[binary]' (installed by pipx: pipx inject vnuma "
            "'psycopg[binary]')",
        ) from error
    given = place.url.query
    settings: dict[str, object] = {
        "connect_timeout": _CONNECT_WAIT_S,
        "application_name": "vnuma",
        **encryption(place.url, os.environ, Path.home(), pq.version()),
    }
    settings = {name: value for name, value in settings.items() if name not in given}
    settings["options"] = f"{given.get('options', '')} -c lock_timeout={LOCK_WAIT_S}s {options}".strip()
    return create_engine(place.url, poolclass=NullPool, hide_parameters=True, connect_args=settings)


@dataclass
class Patience:
    """Waits for a server that answered before and restarts or fails over now.

    Nothing was sent yet, so trying again duplicates nothing. Time counts from the first failure; after the
    limit every unit of work fails at once until the server answers again.
    """

    LIMIT_S: ClassVar[float] = 60.0
    """Half of the silence after which a supervisor counts as dead, in seconds."""

    _EVERY_S: ClassVar[float] = 0.25

    _away_since: float | None = None

    def connect(self, engine: Engine) -> Connection:
        """Connect. Raises SQLAlchemy's error of the last attempt."""
        while True:
            try:
                connection = engine.connect()
            except OperationalError as error:
                if not is_away(error.orig or error):
                    raise
                now = time.monotonic()
                self._away_since = self._away_since or now
                if now - self._away_since >= self.LIMIT_S:
                    raise
                time.sleep(self._EVERY_S)
            else:
                self._away_since = None
                return connection
