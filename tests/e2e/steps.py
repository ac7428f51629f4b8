"""A run driven step by step in this process, to stand between two of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.lab import LabHandle
from tests.support.site import write_inventory, write_study
from tests.support.stores import new_store
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext, vm_of_run
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.cell.dataset import prepare_cell
from vnuma.engine.cell.measure_cell import measure_cell
from vnuma.engine.cell.shape import shape_cell
from vnuma.engine.preflight.findings import Permit
from vnuma.engine.restore.restore import restore_target
from vnuma.engine.restore.restore_vm import Choice, Restored
from vnuma.engine.run.next_cell import claim_next_cell
from vnuma.engine.run.oversight import SupervisedRun
from vnuma.engine.run.start import StudyRequest, create_run, prepare, take_over_target
from vnuma.store import runs
from vnuma.store.facts import facts_of_run
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Claim, Fact, Run, RunState, Vm
from vnuma.store.samples import StoredSample, iter_samples

NAME = "sql16"


@dataclass
class Steps:
    """One controller with a store of its own, and a run of the small study in it."""

    home: Path
    store: Store
    study: Study
    run: Run
    target: Target
    targets: Mapping[str, Target]

    @property
    def url(self) -> str:
        """The store's address."""
        return self.store.place.url.render_as_string(hide_password=False)

    @classmethod
    def prepared(
        cls,
        home: Path,
        lab: LabHandle,
        *,
        vcenter: Mapping[str, Any] | None = None,
        url: str | None = None,
        **changes: Any,
    ) -> Steps:
        """A run that is stored and has not touched its VM yet; `vcenter` as in `write_inventory`.

        `url` is that of a store which is there; without one it is a file in this home.
        """
        home.mkdir(parents=True, exist_ok=True)
        return cls.of(home, write_inventory(home, lab, **(vcenter or {})), write_study(home, **changes), url)

    @classmethod
    def of(cls, home: Path, inventory: Path, file: Path, url: str | None = None) -> Steps:
        """The same by an inventory and a study file that are there."""
        text = file.read_text(encoding="utf-8")
        study = parse_study(text, "study")
        targets = Inventory(inventory).targets(study.vms)
        place = home / "vnuma.db"
        there = url or (f"sqlite:///{place}" if place.exists() else None)
        store = open_store(there) if there else new_store(place)
        asking = StudyRequest(study, text, targets, Permit(), Inventory(inventory))
        run = create_run(store, asking, *prepare(asking))
        return cls(home, store, study, run, targets[study.vms[0]], targets)

    @classmethod
    def shaped(cls, home: Path, lab: LabHandle, **changes: Any) -> Steps:
        """The same run with its VM in its first arm's shape, and off."""
        steps = cls.prepared(home, lab, **changes)
        steps.shape(steps.take())
        return steps

    @property
    def work(self) -> SupervisedRun:
        """The run as `vnuma run` supervises it."""
        return SupervisedRun(
            self.store, self.url, self.run, self.study, self.targets, Inventory(self.home / "hosts.yml")
        )

    @property
    def vm(self) -> Vm:
        """The VM's row as it is stored now."""
        return vm_of_run(self.store, self.run, self.target)

    @property
    def free(self) -> VmContext:
        """The VM as the store has it now, before it is taken over."""
        return VmContext(self.store, self.run, self.study, self.vm, self.target, home=self.home)

    def take(self, name: str | None = None) -> VmContext:
        """Take the VM over, as a run does at its start and when it is resumed; or the one of that name."""
        target = self.targets[name or self.target.name]
        vm = vm_of_run(self.store, self.run, target)
        taken = take_over_target(VmContext(self.store, self.run, self.study, vm, target, home=self.home))
        with self.store.write() as connection:
            runs.set_run_state(connection, self.run.id, RunState.RUNNING)
        return taken

    def shape(self, context: VmContext) -> Claim:
        """Claim the next cell and bring the VM into its shape; it is off then."""
        attempt = claim_next_cell(context)
        assert isinstance(attempt, Claim), attempt
        shape_cell(context, attempt)
        return attempt

    def measure(self, context: VmContext) -> Claim:
        """The next cell, from its shape to its last sample."""
        attempt = self.shape(context)
        self._measure_shaped(context, attempt)
        return attempt

    def measure_all(self, context: VmContext) -> str:
        """Every cell that is left; returns why none is left."""
        while isinstance(attempt := claim_next_cell(context), Claim):
            shape_cell(context, attempt)
            self._measure_shaped(context, attempt)
        return attempt.why

    def _measure_shaped(self, context: VmContext, attempt: Claim) -> None:
        boot_cell(context, attempt)
        ready_cell(context, attempt)
        prepare_cell(context, attempt)
        measure_cell(context, attempt)

    @property
    def samples(self) -> list[StoredSample]:
        """Every sample of the run."""
        with self.store.read() as connection:
            return list(iter_samples(connection, self.run.id))

    def facts(self, scope: str) -> list[Fact]:
        """The run's facts of this scope."""
        with self.store.read() as connection:
            return list(facts_of_run(connection, self.run.id, scope))

    def restore(self, choice: Choice = "refuse") -> Restored:
        """Restore the VM."""
        return restore_target(self.free, choice)
