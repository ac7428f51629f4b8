"""Where the audit log of a database lies: the same file however its address is written."""

from __future__ import annotations

import pytest

from vnuma.engine.access.places import audit_file
from vnuma.store.place import parse_place


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("localhost/db", "127.0.0.1/db", True),
        ("localhost/db", "[::1]/db", True),
        ("localhost/db", "LocalHost:5432/db", True),
        ("localhost/db", "/db?host=localhost", True),
        ("localhost/db", "a/db?host=127.0.0.1", True),
        ("b:6000/db", "a:5432/db?host=b&port=6000", True),  # psycopg is given the query's
        ("a:5432/db", "a:5432/db?host=b&port=6000", False),
        ("localhost/db", "db1/db", False),
        ("localhost/db", "localhost:5433/db", False),
        ("localhost/db", "localhost/other", False),
    ],
)
def test_a_database_has_one_audit_log_however_its_server_is_named(one: str, other: str, same: bool) -> None:
    """Nor does another database write there."""
    files = [audit_file(parse_place(f"postgresql+psycopg://u@{rest}")) for rest in (one, other)]
    assert (files[0] == files[1]) is same
