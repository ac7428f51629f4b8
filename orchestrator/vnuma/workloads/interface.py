"""The interface between engine and workloads, and how a study's workload is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from vnuma.domain.study.study import Dataset
from vnuma.domain.vm.linux import LinuxFacts
from vnuma.domain.workloads.kinds import SHIPPED, installed, shipped
from vnuma.domain.workloads.metric import Reading as Reading
from vnuma.domain.workloads.settings import WorkloadSettings
from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.statistics_time import Statement
from vnuma.sqlserver.database.dataset import has_memory_optimised
from vnuma.workloads.client import Client
from vnuma.workloads.shell import Shell

Document = dict[str, Any]


@dataclass(frozen=True)
class Obstacle:
    """Why a workload cannot run on this SQL Server, found before the long part starts."""

    what: str
    fix: str
    blocks: bool = True
    """False: it may be gone when the workload begins, so it is only a warning."""


@dataclass(frozen=True, kw_only=True)
class Query(Statement):
    """One statement to time, of that workload, size and form. Without `expected_rows` the run's first
    execution sets them.
    """

    workload: str
    size: int
    form: str


class Reached(Protocol):
    """Where a VM's workload runs by a shell, also after the run."""

    @property
    def vm_key(self) -> str:
        """The VM's identity, the same whatever the inventory calls it."""

    @property
    def shell(self) -> Shell:
        """The shell, as root, of the guest or of the settings' client, for settings that need one."""

    @property
    def boot(self) -> str:
        """The kernel's number of the boot by which the shell's machine was proven."""

    def masked(self, text: str) -> str:
        """The text without the values of the run's secrets."""

    def note(self, words: str) -> None:
        """Write a line of the audit log as it is: mask what is not vnuma's own, since a restore reads it."""


class SystemUnderTest(Reached, Protocol):
    """What a workload sees of one boot of one arm."""

    @property
    def vm(self) -> str:
        """The VM's inventory name."""

    @property
    def arm(self) -> str:
        """The arm's label."""

    @property
    def settings(self) -> Any:
        """The workload's settings for this arm, of the class that the workload names."""

    @property
    def dataset(self) -> Dataset:
        """The study's database: its name, and its tables for workloads that use them."""

    @property
    def server(self) -> SqlServer:
        """The guest's SQL Server; `dataclasses.replace(server, port=..., instance="")` selects
        another port.
        """

    @property
    def simulated(self) -> bool:
        """Whether this is the lab, whose times are modelled."""

    @property
    def lease(self) -> int:
        """The number of the VM's lease, which a resumed run has anew."""

    @property
    def proven_guest_boot(self) -> str:
        """What `guest_boot` was when the guest was proven."""

    def guest_boot(self) -> str:
        """What no two boots of the guest share."""

    def client(self, name: str | None) -> Client:
        """The inventory's host of that name, for settings with a `client`; None: this machine."""

    def say(self, words: str) -> None:
        """Show the present step."""

    def record(self, scope: str, document: Mapping[str, object]) -> None:
        """Store facts with this attempt; reports show those of scope `workload`. Text of a program goes
        through `masked` first, here and in samples.
        """

    def remember(self, scope: str, document: Mapping[str, object]) -> None:
        """Store facts for later boots of this VM in this run."""

    def remembered(self, scope: str) -> Document:
        """The latest facts from `remember`, by key."""

    def stop_if_asked(self) -> None:
        """Raise Interrupted when the run was asked to stop at once."""

    def process_affinity(self, wanted: str) -> AbstractContextManager[None]:
        """Hold SQL Server's process affinity (`0,1,2`), for settings that list it in `changes`.

        Journalled, and restored at the end of the `with`, by the next boot, and at restore.
        """

    def resource_pool(self, percent: int) -> None:
        """Bind the study's database to a pool with that share of memory, for settings that list it.

        Journalled; the restore removes the pool.
        """

    def kernel_settings(self) -> AbstractContextManager[None]:
        """Hold the settings in `settings.kernel_settings` on a Linux machine.

        Journalled, and restored at the end of the `with`, and at restore.
        """


Bench = Callable[[int, str], Reading]
"""Runs one iteration of that size and form on a boot that is verified, warm and ready to be measured.

Raises MeasurementFailed or ConnectionDropped: the attempt then ends.
"""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload. The engine calls `prepare`, then enters `bench`, then runs every size and form in it."""

    settings: type[WorkloadSettings]
    """The class of its settings."""
    prepare: Callable[[SystemUnderTest], Document]
    """Create its data if missing, verify them, and describe them. Idempotent.

    An empty document means that it created no database. The database `system.dataset.database` is dropped
    after the run; nothing else may be left behind, except what `remove` removes.
    """
    bench: Callable[[SystemUnderTest], AbstractContextManager[Bench]]
    """Verify this boot and warm it up; leaving it undoes its changes to the instance.

    Raises MeasurementFailed, PlacementNotProven or another AttemptFailed when the boot is not valid.
    """
    obstacles: Callable[[pyodbc.Connection, Any, Dataset], Iterable[Obstacle]] = lambda *_: ()
    """Everything that prevents it from running on this server, checked before the first change."""
    guest_obstacles: Callable[[Any, LinuxFacts], Iterable[Obstacle]] = lambda *_: ()
    """The same of an arm's settings in this guest, for a workload that uses its shell."""
    sentinel: Callable[[Any, Dataset], Query | None] = lambda *_: None
    """The drift sentinel's query; None for a workload without one."""
    remove: Callable[[Reached, Any], None] = lambda *_: None
    """Remove what `prepare` created in a guest by its shell. Safe to repeat. Raises MeasurementFailed."""


def without_memory_optimised(connection: pyodbc.Connection) -> Iterator[Obstacle]:
    """A SQL Server without In-Memory OLTP."""
    if not has_memory_optimised(connection):
        yield Obstacle(
            "This SQL Server has no memory-optimised tables (In-Memory OLTP).",
            "Use SQL Server 2016 SP1 or later, or Developer or Enterprise edition.",
        )


def require_declared(reading: Reading, settings: WorkloadSettings, form: str) -> None:
    """Raise MeasurementFailed for a reading without its metric, or with undeclared figures."""
    metric = settings.metric(form)
    if metric.source == "value" and reading.value is None:
        raise MeasurementFailed(f"The workload {settings.name} returned no {metric.name} ({metric.unit}).")
    known = [figure.name for figure in settings.figures]
    others = [name for name in reading.figures or () if name not in known]
    if others:
        raise MeasurementFailed(
            f"The workload {settings.name} returned figures that it does not declare: {', '.join(others)}.",
            fix=f"Its settings declare {', '.join(known) or 'none'}.",
        )


def workload_named(name: str) -> Workload:
    """The workload of a valid study."""
    if name not in shipped():
        found: Workload = installed(name)
        return found
    ours: Workload = import_module(f"{SHIPPED}.{name}.workload").WORKLOAD
    return ours
