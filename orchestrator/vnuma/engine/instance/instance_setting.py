"""One setting of a SQL Server instance: its baseline, the value a boot needs, its restore and its check.

Each setting is a class in its own file, listed in `settings.py`. All of them survive restarts, so a
controller that dies leaves them changed; every restore resets them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, cast

from vnuma.domain.arm.arm import Arm
from vnuma.domain.study.study import Study
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.change import Edit
from vnuma.engine.audit.journal import Journal
from vnuma.engine.lease.baseline_document import NOT_KNOWN, baseline_guest
from vnuma.errors import LoginRefused, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.sqlserver.instance import ready
from vnuma.sqlserver.instance.ready import QuietRule
from vnuma.store.rows import Vm

T = TypeVar("T", bool, str)

_AT_ONCE = QuietRule(cpu_percent=100, for_s=0, timeout_s=1)


@dataclass(frozen=True)
class Boot:
    """A boot of an arm on a VM of the run, planned or running, for which an instance's settings
    are needed.
    """

    study: Study
    arm: Arm
    vm: Vm
    prediction: Prediction


@dataclass(frozen=True)
class State(Generic[T]):
    """A setting's value, None where this version lacks it; and whether it still needs a restart."""

    value: T | None
    needs_restart: bool


class InstanceSetting(ABC, Generic[T]):
    """A setting of SQL Server that a study may change. Subclasses supply what differs."""

    key: ClassVar[str]
    """Its name in baselines, changes and audit lines."""

    words: ClassVar[str]
    """Its name for people, in audit lines and messages."""

    at_next_start: ClassVar[bool]
    """Whether it takes effect at SQL Server's next start, and must be set before the boot that needs it."""

    @abstractmethod
    def is_changed_by(self, study: Study) -> bool:
        """Whether the study changes it, so that it is part of the baseline."""

    @abstractmethod
    def read_baseline(self, connection: pyodbc.Connection, vm: str) -> T:
        """Its value before the run. Raises PreflightBlocked where it could not be restored."""

    @abstractmethod
    def read(self, connection: pyodbc.Connection, wanted: T) -> State[T]:
        """Its present value; a restart is needed if SQL Server did not start with `wanted`."""

    @abstractmethod
    def write(self, connection: pyodbc.Connection, wanted: T) -> State[T]:
        """Set it and read it back. Raises SqlFailed, PrivilegeMissing."""

    @abstractmethod
    def by_hand(self, wanted: T) -> str:
        """How a person sets it, for the end of an error message."""

    def shown(self, value: T | None) -> str:
        return str(value)

    def wanted_by(self, boot: Boot, server: SqlServer, connection: pyodbc.Connection) -> T | None:
        """The value that a planned boot needs, read during the boot before it; None: nothing to set."""
        raise NotImplementedError(f"{self.key} is not set before a boot")

    def wanted_for_plan(self, boot: Boot) -> T:
        """The same for a plan that has no server to read from."""
        raise NotImplementedError(f"{self.key} is not set before a boot")

    def mismatch(self, boot: Boot, server: SqlServer, journal: Journal) -> str | None:
        """What is wrong with it in this boot, as a sentence; it is then set for the next boot."""
        del boot, server, journal
        return None

    def baseline_of(self, vm: Vm) -> T | None:
        """Its value before the run; None for a run that does not change it."""
        return cast("T | None", baseline_guest(vm).get(self.key))

    def is_set_for(self, boot: Boot) -> bool:
        """Whether this run sets it for each boot as the arm needs."""
        return self.at_next_start and self.baseline_of(boot.vm) is not None

    def switch_for(self, boot: Boot, server: Callable[[], SqlServer], journal: Journal) -> None:
        """Set it for the next boot while the present one still runs.

        Does nothing if the server does not answer: `mismatch` then rejects the boot and sets it for the next.
        """
        if not self.is_set_for(boot):
            return
        with suppress(SqlUnreachable, LoginRefused), connect(server()) as connection:
            wanted = self.wanted_by(boot, server(), connection)
            if wanted is not None:
                self.set(connection, wanted, journal)

    def planned_for(self, boot: Boot, server: SqlServer | None) -> Edit | None:
        """What `switch_for` would change; None for nothing, or for a server that does not answer.

        Without a server, its present value is shown as unknown.
        """
        if not self.is_set_for(boot):
            return None
        if server is None:
            return Edit(self.key, NOT_KNOWN, self.wanted_for_plan(boot))
        with suppress(SqlUnreachable, LoginRefused), connect(server) as connection:
            wanted = self.wanted_by(boot, server, connection)
            now = None if wanted is None else self.read(connection, wanted).value
            return None if wanted == now else Edit(self.key, now, wanted)
        return None

    def set(self, connection: pyodbc.Connection, wanted: T, journal: Journal) -> State[T]:
        """Set it unless it has that value; returns its state afterwards."""
        now = self.read(connection, wanted)
        if now.value == wanted:
            return now
        with journal.change(self.words, [Edit(self.key, now.value, wanted)]):
            return self.write(connection, wanted)

    def switch(self, server: SqlServer, wanted: T, journal: Journal) -> State[T]:
        """The same over its own connection. Raises SqlFailed, SqlUnreachable, PrivilegeMissing."""
        with connect(server) as connection:
            return self.set(connection, wanted, journal)

    def planned(self, server: SqlServer | None, wanted: T) -> tuple[Edit | None, bool]:
        """The edit that sets it, None if it has that value; and whether SQL Server must restart then."""
        with suppress(SqlUnreachable, LoginRefused):
            if server is not None:
                with connect(server) as connection:
                    now = self.read(connection, wanted)
                edit = None if now.value == wanted else Edit(self.key, now.value, wanted)
                return edit, now.needs_restart
        return Edit(self.key, NOT_KNOWN, wanted), self.at_next_start

    def verify(self, server: SqlServer, wanted: T, deadline_s: float) -> None:
        """Wait for SQL Server. Raises SqlTimeout, and SqlFailed unless it runs with `wanted`."""
        wait_for_server(server, deadline_s)
        with connect(server) as connection:
            now = self.read(connection, wanted)
        if now.value == wanted and not now.needs_restart:
            return
        became = "is not in use" if now.value == wanted else f"is {self.shown(now.value)}"
        raise SqlFailed(
            f"{server.host}: {self.words} {became}; before the run it was {self.shown(wanted)}.",
            fix=self.by_hand(wanted),
        )


def wait_for_server(server: SqlServer, deadline_s: float, powered_on_s: float = float("inf")) -> None:
    """Wait until SQL Server of a running VM, started after the power-on, accepts logins. Raises
    SqlTimeout.
    """
    ready.wait_ready(server, database=None, powered_on_s=powered_on_s, deadline_s=deadline_s, quiet=_AT_ONCE)
