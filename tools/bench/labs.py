"""Labs of the benchmark's own, each with its home, that end with their `with`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.lab import LabHandle, start_lab
from vnuma.lab import ready_program
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.sqlserver.client.driver import discover


@contextmanager
def running(scenario: str | dict[str, Any] = "paper") -> Iterator[LabHandle]:
    """A lab with a built-in scenario, or one given as its file would say it; its folder is an empty home."""
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-") as folder:
        lab = start_lab(ready_program(), Path(folder), scenario, {})
        try:
            yield lab
        finally:
            lab.stop()


def sql_server(lab: LabHandle, driver: str = "auto") -> SqlServer:
    """The SQL Server in the lab's first VM. Raises DriverMissing."""
    end = next(iter(lab.vms.values()))
    place = (end.host, end.port, end.user, end.password)
    return SqlServer(*place, driver=discover(driver), ca_file=str(lab.vcenter.ca_file))
