"""What a workload sees of one boot of one arm: where to connect, and where to store results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.domain.study.study import Dataset
from vnuma.engine.access.client_machine import client_named
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.secrets import Private
from vnuma.engine.audit.journal import journal_of
from vnuma.engine.instance import kernel
from vnuma.engine.instance.kernel import kernel_baseline
from vnuma.engine.instance.process_affinity import PROCESS_AFFINITY
from vnuma.engine.instance.resource_pool import RESOURCE_POOL
from vnuma.engine.instance.sql_identity import require_proven
from vnuma.engine.lease.attempt import Attempt, add_facts, say_step, undo_at_end
from vnuma.engine.lease.foreign_changes import refuse_settings
from vnuma.engine.lease.hours import refuse_if_over
from vnuma.errors import Interrupted, MeasurementFailed
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.store import facts, runs
from vnuma.store.rows import StopRequest
from vnuma.store.types import utc_now
from vnuma.workloads.client import Client
from vnuma.workloads.interface import Document
from vnuma.workloads.shell import Shell


@dataclass(frozen=True)
class CellSystem:
    """`workloads.interface.SystemUnderTest` for one attempt at a cell."""

    context: VmContext
    attempt: Attempt

    @property
    def vm(self) -> str:
        return self.context.vm.name

    @property
    def arm(self) -> str:
        return self.attempt.arm

    @property
    def settings(self) -> Any:
        """The workload's settings for this arm."""
        return self.context.study.workload_of(self.attempt.arm)

    @property
    def dataset(self) -> Dataset:
        return self.context.study.dataset

    @property
    def server(self) -> SqlServer:
        return self.context.sql()

    @property
    def simulated(self) -> bool:
        """Whether the run's vCenter is the lab."""
        return self.context.run.simulated is not None

    @property
    def shell(self) -> Shell:
        return self.context.shell()

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Work in the guest: with its SQL Server proven, or by its shell, with the target locked."""
        context = self.context
        if "sql_server" in context.study.workload.needs:
            require_proven(context, self.attempt)
            yield
            return
        with context.locked():
            context.fence()
            yield

    def client(self, name: str | None) -> Client:
        """The client machine. Raises InputError when the run's inventory does not have it."""
        private = Private.read()
        where = private.inventory if private else self.context.run.inventory
        return client_named(Path(where or "inventory"), name)

    def say(self, words: str) -> None:
        """Show the cell's current step in the progress."""
        say_step(self.context, self.attempt, f"measure {words}")

    def record(self, scope: str, document: Mapping[str, object]) -> None:
        """Store facts of this attempt."""
        add_facts(self.context, self.attempt, scope, document)

    def remember(self, scope: str, document: Mapping[str, object]) -> None:
        """Store facts of this VM in this run."""
        with self.context.store.write() as write:
            facts.add_vm_facts(write, self.context.vm.id, scope, dict(document))

    def remembered(self, scope: str) -> Document:
        """The latest value of each of the VM's facts in that scope, in this run."""
        known = self.context.store.ask(lambda read: facts.facts_of_run(read, self.context.run.id, scope))
        return {
            fact.key: fact.value
            for fact in known
            if fact.vm_id == self.context.vm.id and fact.attempt_id is None
        }

    def stop_if_asked(self) -> None:
        """Raise between iterations if a stop was requested or the allowed hours end. Samples are kept."""
        run = self.context.run.name
        refuse_if_over(self.context.study, run, utc_now())
        asked = self.context.store.ask(lambda read: runs.get_run(read, run).stop_requested)
        if asked is StopRequest.NOW:
            raise Interrupted(f"{run} was asked to stop.", fix=f"vnuma run --resume {run}")

    @contextmanager
    def process_affinity(self, wanted: str) -> Iterator[None]:
        """Limit SQL Server's process affinity inside the `with`, then restore the baseline's."""
        journal = journal_of(self.context)
        with PROCESS_AFFINITY.put_back(self.context.vm, self.server, journal):
            PROCESS_AFFINITY.switch(self.server, wanted, journal)
            yield

    def resource_pool(self, percent: int) -> None:
        """Create our pool with that share of memory and bind the study's database to it, up to the
        restore.
        """
        RESOURCE_POOL.hold(self.server, self.dataset.database, percent, journal_of(self.context))

    @contextmanager
    def kernel_settings(self) -> Iterator[None]:
        """Set the guest's kernel settings inside the `with`, then restore the baseline's, or this boot's."""
        wanted = self.settings.kernel_settings()
        now = kernel.read(self.shell, wanted) if wanted else {}
        known = kernel_baseline(self.context.vm) or now
        before = {name: value for name, value in known.items() if name in wanted}
        journal = journal_of(self.context)
        absent = sorted(set(wanted) - set(before))
        if absent:
            raise MeasurementFailed(f"{self.vm}: its kernel has no {', '.join(absent)}.", fix="Write keep.")
        refuse_settings(self.vm, kernel.foreign_changes(before, wanted, now))
        with undo_at_end(lambda: kernel.switch(self.shell, before, wanted, journal)):
            kernel.switch(self.shell, wanted, now, journal)
            yield
