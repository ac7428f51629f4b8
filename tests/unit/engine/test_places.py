"""Where the audit log of a database lies: the same file however its address is written."""

from __future__ import annotations

from vnuma.engine.access.places import audit_file
from vnuma.store.place import parse_place


def test_the_host_that_the_driver_connects_to_names_the_audit_log() -> None:
    """In a URL's query host and port go before its own, as psycopg is given them."""
    plain, queried, other = (
        audit_file(parse_place(f"postgresql+psycopg://u@{rest}"))
        for rest in ("b:6000/db", "a:5432/db?host=b&port=6000", "a:5432/db")
    )
    assert plain == queried != other


def test_this_machine_s_names_are_one_host() -> None:
    """Also in the query."""
    files = {
        audit_file(parse_place(f"postgresql+psycopg://u@{rest}"))
        for rest in ("localhost/db", "127.0.0.1/db", "a/db?host=127.0.0.1")
    }
    assert len(files) == 1
