"""Locations of the home, the store and the audit log. Imports neither vSphere nor ODBC, to load fast."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from pathlib import Path

from sqlalchemy import URL

from vnuma import assets
from vnuma.engine.access.secrets import Private
from vnuma.store.place import Place, default_url, is_loopback


def home_folder() -> Path:
    """The folder for locks, logs and the default store; inside a play, the supervisor's home."""
    private = Private.read()
    return Path(private.home) if private else assets.home()


def store_url(given: str | None = None) -> str:
    """The store's address: `given`, the run's private file, VNUMA_STORE, or SQLite in the home."""
    private = Private.read()
    if given:
        return given
    if private:
        return private.store_url
    return os.environ.get("VNUMA_STORE") or default_url(home_folder())


def audit_file(place: Place) -> Path:
    """The audit file next to a SQLite store; for a database server, one in vnuma's home."""
    if place.is_sqlite:
        return place.path.with_name(f"{place.path.stem}.audit.jsonl")
    url = place.url
    where = json.dumps([*_address(url), url.database])
    name = re.sub(r"\W", "_", url.database or "")
    return home_folder() / f"vnuma-{name}-{hashlib.sha256(where.encode()).hexdigest()[:8]}.audit.jsonl"


def audit_home() -> str:
    """The home whose audit files this process writes, as HOST:FOLDER: two homes have two files."""
    return f"{platform.node()}:{home_folder().resolve()}"


def _address(url: URL) -> tuple[str, str]:
    """Host and port of a database; every name of this machine gives the same result."""
    given = url.get_dialect()().create_connect_args(url)[1]  # values in a URL's query override it
    host, port = str(given.get("host", "")), str(given.get("port", "5432"))
    return "localhost" if is_loopback(host) else host.lower(), port
