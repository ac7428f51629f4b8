"""What this machine has of what a study needs."""

from __future__ import annotations

import platform
import subprocess
import sys

from vnuma import __version__, lab
from vnuma.errors import DriverMissing, EnvironmentProblem

_PIP_TIMEOUT_S = 300


def machine_lines() -> list[str]:
    """Python, lab and ODBC driver in a line each."""
    built = lab.find_built()
    try:
        from vnuma.sqlserver.client.driver import discover  # noqa: PLC0415 - that it is missing is an answer

        found = discover()
        driver = f"{found.name} {found.version}"
    except DriverMissing as error:
        driver = f"none: {error.what} {error.fix}"
    return [
        f"vnuma   {__version__}, Python {platform.python_version()}",
        f"lab     {built or 'not built yet: vnuma lab build'}",
        f"ODBC    {driver}",
    ]


def fetch_odbc_wheel() -> None:
    """Install the wheel into this environment. Raises EnvironmentProblem with pip's last words."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "mssql-python-odbc"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PIP_TIMEOUT_S)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise EnvironmentProblem(
            f"pip could not install mssql-python-odbc: {last[0]}",
            fix="Check the network. Installed by pipx: pipx inject vnuma mssql-python-odbc. "
            "By uv: uv tool install --with mssql-python-odbc FILE.",
        )
