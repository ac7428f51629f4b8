"""What this machine has of what a study needs."""

from __future__ import annotations

import platform
import sqlite3
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from vnuma import __version__, lab
from vnuma.domain.study.declaration import METHOD
from vnuma.engine.access.places import audit_file, store_url
from vnuma.errors import DriverMissing, EnvironmentProblem
from vnuma.store.place import parse_place
from vnuma.store.schema import HEAD

PACKAGES = ("ansible-core", "ansible-runner", "pyvmomi", "pyodbc", "SQLAlchemy", "numpy", "scipy", "pandas")
"""Whose versions a bug report needs; pandas is an extra."""

_PIP_TIMEOUT_S = 300


def machine_document() -> dict[str, Any]:
    """Versions of all that figures and stores depend on. What is missing is null, a driver with a reason."""
    built = lab.find_built()
    driver: dict[str, str | None]
    try:
        from vnuma.sqlserver.client.driver import discover  # noqa: PLC0415 - that it is missing is an answer

        found = discover()
        driver = {"name": found.name, "version": found.version, "reason": None}
    except DriverMissing as error:
        driver = {"name": None, "version": None, "reason": f"{error.what} {error.fix}"}
    return {
        "schema": "vnuma/version/1",
        "vnuma": __version__,
        "method": METHOD,
        "store": {"schema": HEAD, "sqlite": sqlite3.sqlite_version},
        "python": platform.python_version(),
        "system": platform.platform(),
        "odbc": driver,
        "lab": str(built) if built else None,
        "packages": {name: _installed(name) for name in PACKAGES},
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine_lines() -> list[str]:
    """Python, lab and ODBC driver, the store and its audit log, in a line each."""
    has, place = machine_document(), parse_place(store_url())
    odbc = has["odbc"]
    driver = f"none: {odbc['reason']}" if odbc["reason"] else f"{odbc['name']} {odbc['version']}"
    return [
        f"vnuma   {has['vnuma']}, Python {has['python']}",
        f"lab     {has['lab'] or 'not built yet: vnuma lab build'}",
        f"ODBC    {driver}",
        f"store   {place}",
        f"audit   {audit_file(place)}",
    ]


def fetch_odbc_wheel() -> None:
    """Install the wheel into this environment. Raises EnvironmentProblem with pip's last words."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "mssql-python-odbc"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_PIP_TIMEOUT_S, umask=0o022
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise EnvironmentProblem(
            f"pip could not install mssql-python-odbc: {last[0]}",
            fix="Check the network. Installed by pipx: pipx inject vnuma mssql-python-odbc. "
            "By uv: uv tool install --with mssql-python-odbc FILE.",
        )
