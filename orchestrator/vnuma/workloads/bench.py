"""What a workload is to the engine, and what the engine offers to a workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from vnuma.domain.study.study import Dataset
from vnuma.domain.vm.machine import MachineFacts
from vnuma.domain.workloads.reading import Reading as Reading
from vnuma.domain.workloads.settings import WorkloadSettings
from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.workloads.client import Client
from vnuma.workloads.query import Query
from vnuma.workloads.shell import Shell

Document = dict[str, Any]


@dataclass(frozen=True)
class Obstacle:
    """Why a workload cannot run on this SQL Server, found before the long part starts."""

    what: str
    fix: str


class Site(Protocol):
    """One boot of one arm, as a workload sees it."""

    @property
    def vm(self) -> str:
        """The VM's inventory name."""

    @property
    def arm(self) -> str:
        """The arm's label."""

    @property
    def settings(self) -> Any:
        """The workload's settings as this arm runs it: of the class that the workload names."""

    @property
    def dataset(self) -> Dataset:
        """The study's database: its name, and its tables for workloads that use them."""

    @property
    def server(self) -> SqlServer:
        """The guest's SQL Server; `dataclasses.replace(server, port=..., instance="")` is another port."""

    @property
    def simulated(self) -> bool:
        """Whether this is the lab, whose times are modelled."""

    @property
    def shell(self) -> Shell:
        """The machine's shell, as root, for settings whose `guest` is linux."""

    def client(self, name: str | None) -> Client:
        """The inventory's host of that name, for settings whose `client` names one; None: this machine."""

    def say(self, words: str) -> None:
        """Show what is being done now."""

    def record(self, scope: str, document: Mapping[str, object]) -> None:
        """Keep facts with this attempt; reports show those of scope `workload`."""

    def remember(self, scope: str, document: Mapping[str, object]) -> None:
        """Keep facts for every later boot of this VM in this run."""

    def remembered(self, scope: str) -> Document:
        """What `remember` kept, the latest by key."""

    def stop_if_asked(self) -> None:
        """Raises Interrupted when somebody asked the run to stop at once."""

    def process_affinity(self, wanted: str) -> AbstractContextManager[None]:
        """Hold SQL Server's process affinity (`0,1,2`), for settings that say so in `changes`.

        Journalled, and restored at the end of the `with`, by the next boot, and at restore.
        """

    def resource_pool(self, percent: int) -> None:
        """Bind the study's database to a pool with that share of memory, for settings that say so.

        Journalled; it stands until the restore, which takes the pool away.
        """

    def kernel_settings(self) -> AbstractContextManager[None]:
        """Hold what `settings.kernel_settings` names on a Linux machine.

        Journalled, and restored at the end of the `with`, and at restore.
        """


class Bench(Protocol):
    """A workload at work on one boot: verified, warm, and ready to be measured."""

    def run(self, size: int, form: str) -> Reading:
        """One iteration. Raises MeasurementFailed or ConnectionDropped: the attempt then ends."""


class Workload(Protocol):
    """A workload. The engine calls `prepare`, then enters `bench`, then runs every size and form in it."""

    @property
    def settings(self) -> type[WorkloadSettings]:
        """The class of its settings."""

    def obstacles(self, connection: pyodbc.Connection, settings: Any, dataset: Dataset) -> Iterator[Obstacle]:
        """Everything that keeps it from running on this server, asked before the first change."""

    def prepare(self, site: Site) -> Document:
        """Make its data if missing, verify them, and describe them. Idempotent.

        An empty document: it made no database. The database `site.dataset.database` is dropped after the
        run; nothing else may be left behind.
        """

    def sentinel(self, settings: Any, dataset: Dataset) -> Query | None:
        """The drift sentinel's query; None for a workload that has none."""

    def bench(self, site: Site) -> AbstractContextManager[Bench]:
        """Verify this boot and warm it up; leaving it undoes whatever it did to the instance.

        Raises MeasurementFailed, PlacementNotProven or another AttemptFailed when the boot cannot count.
        """


class MachineWorkload(Workload, Protocol):
    """A workload whose settings say `guest: linux`: it asks a machine, and leaves files there."""

    def machine_obstacles(self, settings: Any, machine: MachineFacts) -> Iterator[Obstacle]:
        """Everything that keeps an arm's settings from running there, asked before anything starts."""

    def remove(self, shell: Shell, settings: Any) -> None:
        """Remove what `prepare` made. Safe to repeat. Raises MeasurementFailed when it stays."""


def require_declared(reading: Reading, settings: WorkloadSettings, form: str) -> None:
    """Raises MeasurementFailed for a reading without its metric, and for figures under other names."""
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
