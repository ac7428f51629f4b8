"""One setting of a whole SQL Server instance: its baseline, how a boot needs it, its restore and the proof.

Each setting is a class in a file of its own; `settings.py` lists them. All of them outlive restarts, so a
controller that dies leaves them behind: every restore puts them back.
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
from vnuma.engine.lease.audit import Journal
from vnuma.engine.lease.baseline import NOT_KNOWN, baseline_guest
from vnuma.errors import LoginRefused, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance import ready
from vnuma.sqlserver.instance.ready import QuietRule
from vnuma.store.rows import Vm

T = TypeVar("T", bool, str)

_AT_ONCE = QuietRule(cpu_percent=100, for_s=0, timeout_s=1)


@dataclass(frozen=True)
class Boot:
    """A boot of an arm on a VM of the run, to come or under way: how it needs an instance's settings."""

    study: Study
    arm: Arm
    vm: Vm
    prediction: Prediction


@dataclass(frozen=True)
class State(Generic[T]):
    """A setting's value, None where this version has none; and whether a restart is still needed."""

    value: T | None
    needs_restart: bool


class InstanceSetting(ABC, Generic[T]):
    """A setting of SQL Server that a study may change. What it is, its class says; the rest is common."""

    key: ClassVar[str]
    """In baselines, changes and audit lines."""

    words: ClassVar[str]
    """For people: in audit lines and sentences."""

    at_next_start: ClassVar[bool]
    """Whether it takes effect at SQL Server's next start: then it is set before the boot that needs it."""

    @abstractmethod
    def is_changed_by(self, study: Study) -> bool:
        """Whether the study changes it, so that it belongs to the baseline."""

    @abstractmethod
    def read_baseline(self, connection: pyodbc.Connection, vm: str) -> T:
        """What it is before the run. Raises PreflightBlocked where it could not be restored."""

    @abstractmethod
    def read(self, connection: pyodbc.Connection, wanted: T) -> State[T]:
        """How it stands; a restart is needed if this start does not go by `wanted`."""

    @abstractmethod
    def write(self, connection: pyodbc.Connection, wanted: T) -> State[T]:
        """Set it and read it back. Raises SqlFailed, PrivilegeMissing."""

    @abstractmethod
    def by_hand(self, wanted: T) -> str:
        """How a person sets it, for the end of an error."""

    def shown(self, value: T | None) -> str:
        """A value in a sentence."""
        return str(value)

    def wanted_by(self, boot: Boot, server: SqlServer, connection: pyodbc.Connection) -> T | None:
        """What a boot to come needs, asked while the boot before it runs; None: nothing is to be set."""
        raise NotImplementedError(f"{self.key} is not set before a boot")

    def wanted_unasked(self, boot: Boot) -> T:
        """The same for a plan, where no server can be asked."""
        raise NotImplementedError(f"{self.key} is not set before a boot")

    def mismatch(self, boot: Boot, server: SqlServer, journal: Journal) -> str | None:
        """What is wrong with it in this boot, as a sentence; it is then set for the next boot."""
        del boot, server, journal
        return None

    def baseline_of(self, vm: Vm) -> T | None:
        """What it was before the run; None for a run that does not change it."""
        return cast("T | None", baseline_guest(vm).get(self.key))

    def is_set_for(self, boot: Boot) -> bool:
        """Whether each boot of this run has it as its arm needs it."""
        return self.at_next_start and self.baseline_of(boot.vm) is not None

    def switch_for(self, boot: Boot, server: Callable[[], SqlServer], journal: Journal) -> None:
        """Set it for a boot to come, while the boot before still runs.

        A server that does not answer is left: `mismatch` then finds the boot wrong and sets it for the next.
        """
        if not self.is_set_for(boot):
            return
        with suppress(SqlUnreachable, LoginRefused), connect(server()) as connection:
            wanted = self.wanted_by(boot, server(), connection)
            if wanted is not None:
                self.set(connection, wanted, journal)

    def planned_for(self, boot: Boot, server: SqlServer | None) -> Edit | None:
        """What `switch_for` would change; None for nothing, or for a server that does not answer.

        Without a server to ask (None), what it is now is not known.
        """
        if not self.is_set_for(boot):
            return None
        if server is None:
            return Edit(self.key, NOT_KNOWN, self.wanted_unasked(boot))
        with suppress(SqlUnreachable, LoginRefused), connect(server) as connection:
            wanted = self.wanted_by(boot, server, connection)
            now = None if wanted is None else self.read(connection, wanted).value
            return None if wanted == now else Edit(self.key, now, wanted)
        return None

    def set(self, connection: pyodbc.Connection, wanted: T, journal: Journal) -> State[T]:
        """How it stands after it was set, if it had to be."""
        now = self.read(connection, wanted)
        if now.value == wanted:
            return now
        with journal.change(self.words, [Edit(self.key, now.value, wanted)]):
            return self.write(connection, wanted)

    def switch(self, server: SqlServer, wanted: T, journal: Journal) -> State[T]:
        """The same over a connection of its own. Raises SqlFailed, SqlUnreachable, PrivilegeMissing."""
        with connect(server) as connection:
            return self.set(connection, wanted, journal)

    def planned(self, server: SqlServer | None, wanted: T) -> tuple[Edit | None, bool]:
        """The edit that setting it takes, None for none; and whether a restart of SQL Server follows."""
        with suppress(SqlUnreachable, LoginRefused):
            if server is not None:
                with connect(server) as connection:
                    now = self.read(connection, wanted)
                edit = None if now.value == wanted else Edit(self.key, now.value, wanted)
                return edit, now.needs_restart
        return Edit(self.key, NOT_KNOWN, wanted), self.at_next_start

    def verify(self, server: SqlServer, wanted: T, deadline_s: float) -> None:
        """Wait for the server to come up. Raises SqlTimeout, and SqlFailed unless it goes by `wanted`."""
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
    """Until SQL Server of a VM that is on takes logins, started since the power-on. Raises SqlTimeout."""
    ready.wait_ready(server, database=None, powered_on_s=powered_on_s, deadline_s=deadline_s, quiet=_AT_ONCE)
