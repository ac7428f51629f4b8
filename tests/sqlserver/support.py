"""What the SQL Server adapter's tests share."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from tests.support.lab import LabHandle
from vnuma.errors import DriverMissing
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.sqlserver.client.driver import Driver, DriverKind, discover
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.instance.ready import Clock

SMALL = DatasetSpec(transaction_history_rows=300, sales_order_detail_rows=200)
"""A dataset that is made in a moment."""


class LabFactory(Protocol):
    """`lab(scenario, **overrides)`, as the tests' common fixture gives it."""

    def __call__(self, scenario: str | dict[str, Any] = "paper", **overrides: Any) -> LabHandle: ...


class HurriedClock(Clock):
    """A clock whose waiting takes no time; `naps` are the waits asked for."""

    def __init__(self, each_look_s: float = 0.0) -> None:
        self.time = 0.0
        self.naps: list[float] = []
        self._each_look_s = each_look_s

    def now(self) -> float:
        """Seconds; each look at the clock may take some."""
        self.time += self._each_look_s
        return self.time

    def wait(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.naps.append(seconds)
        self.time += seconds


def driver_of(kind: DriverKind) -> Driver:
    """This machine's driver of a kind; without one the test is skipped."""
    try:
        return discover(kind)
    except DriverMissing as error:
        pytest.skip(error.what)


def server_of(lab: LabHandle, name: str = "sql16", **changed: Any) -> SqlServer:
    """A VM's SQL Server, with some fields changed."""
    end = lab.vms[name]
    fields = {
        "host": end.host,
        "port": end.port,
        "user": end.user,
        "password": end.password,
        "driver": discover(),
        "ca_file": str(lab.vcenter.ca_file),
    }
    return SqlServer(**{**fields, **changed})


def listening(lab: LabHandle, **changed: Any) -> SqlServer:
    """The paper's SQL Server, once it listens."""
    lab.wait_for("sql_listening")
    return server_of(lab, **changed)


def vm(name: str = "sql16", **fields: Any) -> dict[str, Any]:
    """A VM of a scenario."""
    return {"name": name, **fields}
