"""Empty stores for tests that ask something else than how a store is made (tests/store does that)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from vnuma.store import attempts, runs
from vnuma.store.open import Store, open_store
from vnuma.store.rows import AttemptLine


def new_store(path: Path) -> Store:
    """An empty SQLite store at a path where none is: a copy of one that was migrated once."""
    assert not path.exists()
    path.write_bytes(_empty())
    return open_store(f"sqlite:///{path}")


@cache
def _empty() -> bytes:
    """The file of an empty store, whose last connection has emptied its write-ahead log."""
    with TemporaryDirectory(prefix="vnuma-store-") as folder:
        path = Path(folder) / "vnuma.db"
        open_store(f"sqlite:///{path}")
        assert not path.with_name("vnuma.db-wal").exists()
        return path.read_bytes()


def attempt_lines(store: Store, run: str = "latest") -> tuple[AttemptLine, ...]:
    """The attempts of a run so far, in order."""
    with store.read() as connection:
        return attempts.lines_of_run(connection, runs.get_run(connection, run).id)
