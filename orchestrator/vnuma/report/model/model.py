"""A run as reports see it: the store's data, with their analysis."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vnuma.analysis.analyse import analyse
from vnuma.analysis.planning import iteration_seconds
from vnuma.analysis.records import Series, design_of
from vnuma.analysis.result import Analysis, RunResult
from vnuma.collector import gc_paused
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError, StoreError
from vnuma.report.model.executions import FormExecutions, WaitShare, WaitTotals, add_executions, read_again
from vnuma.store import attempts, facts, leases, runs
from vnuma.store.cells import cells_of_run, used_up_cells
from vnuma.store.open import Store
from vnuma.store.rows import Attempt, Cell, CellState, Fact, Outcome, Run, RunState, Vm
from vnuma.store.timed import cell_records, timed
from vnuma.words.plain_text import escaped
from vnuma.words.provenance import mark

_FILE_NAME = re.compile(r"\w[\w.-]*", re.ASCII)


@dataclass(frozen=True)
class LoadedRun:
    """Everything a report needs. Attempts include those that did not count, in order of time.

    `iteration_seconds`: by VM, the duration of one pass over all sizes and forms.
    """

    run: Run
    study: Study
    study_text: str
    study_sha256: str
    result: RunResult
    vms: tuple[Vm, ...]
    cells: tuple[Cell, ...]
    attempts: tuple[Attempt, ...]
    facts: tuple[Fact, ...]
    waits: tuple[WaitShare, ...]
    waits_by_arm: tuple[WaitShare, ...]
    executions: tuple[FormExecutions, ...]
    iteration_seconds: Mapping[str, float]

    @property
    def simulated(self) -> str | None:
        """The lab's scenario; None for figures of real machines."""
        return self.run.simulated

    @property
    def archive(self) -> str | None:
        """The file that it was read from; None if it was measured with this store."""
        origin = next((one.value for one in reversed(self.facts) if one.scope == runs.IMPORTED), None)
        return str(origin["file"]) if isinstance(origin, dict) and "file" in origin else None

    @property
    def label(self) -> str:
        """Its name, and the archive that it was read from: two archives may have runs of one name."""
        return f"{self.run.name} (from {escaped(self.archive)})" if self.archive else self.run.name

    @property
    def argument(self) -> str:
        """How a command names it: the run, or the archive that it was read from."""
        return shlex.quote(self.archive or self.run.name)

    @property
    def identity(self) -> tuple[str, int, datetime]:
        """The same for the run in its store and in its archives, and for no other run."""
        return self.run.study_name, self.run.seed, self.run.created_at

    @property
    def file_stem(self) -> str:
        """The stem of its file names: RUN, or RUN.simulated.

        Raises InputError for a name with a path: the store may come from an archive.
        """
        name = self.run.name
        if not _FILE_NAME.fullmatch(name):
            raise InputError(
                f"Run {self.run.id} is called {escaped(name)}, which is not a valid file name.",
                fix="Name the file: -o FILE",
            )
        return f"{name}{mark(self.simulated)}"

    @property
    def partial(self) -> bool:
        """Whether the run is still going, so that its figures will change."""
        return self.run.state in (RunState.PLANNED, RunState.RUNNING, RunState.STOPPING)

    @property
    def primary(self) -> list[tuple[Vm, Analysis]]:
        """Each VM with its primary analysis."""
        return [(vm, one) for one in self.result.primary if (vm := self.vm(one.vm))]

    def primary_of(self, vm: Vm) -> Analysis:
        """A VM's primary analysis."""
        return next(analysis for analysis in self.result.primary if analysis.vm == vm.name)

    def vm(self, name: str) -> Vm | None:
        """The VM of that inventory name."""
        return next((vm for vm in self.vms if vm.name == name), None)

    def cells_of(self, vm: Vm) -> tuple[Cell, ...]:
        """The cells of one VM in the planned order."""
        return tuple(cell for cell in self.cells if cell.vm_id == vm.id)

    def due_cells(self, vm: Vm) -> tuple[Cell, ...]:
        """Those that no declared rule left out: in a run that ended early, fewer than planned."""
        return tuple(cell for cell in self.cells_of(vm) if cell.state is not CellState.SKIPPED)

    def attempts_of(self, vm: Vm, *outcomes: Outcome) -> tuple[Attempt, ...]:
        """The attempts of one VM; with `outcomes`, those with one of them."""
        return tuple(
            item
            for item in self.attempts
            if item.vm_id == vm.id and (not outcomes or item.outcome in outcomes)
        )

    def not_counted(self, vm: Vm) -> tuple[Attempt, ...]:
        """Ended attempts that did not count: invalid, failed and interrupted ones."""
        return self.attempts_of(vm, Outcome.INVALID, Outcome.FAILED, Outcome.INTERRUPTED)

    def vm_facts(self, vm: Vm, scope: str) -> dict[str, Any]:
        """The VM's latest facts in one scope, by key."""
        mine = (fact for fact in self.facts if fact.vm_id == vm.id and fact.attempt_id is None)
        return {fact.key: fact.value for fact in mine if fact.scope == scope}

    def attempt_facts(self, vm: Vm, scope: str, key: str) -> dict[int, Any]:
        """One fact of each attempt of the VM, by attempt."""
        return {
            fact.attempt_id: fact.value
            for fact in self.facts
            if fact.vm_id == vm.id and fact.attempt_id and (fact.scope, fact.key) == (scope, key)
        }


def load_run(store: Store, run: str) -> LoadedRun:
    """Read a run by name, id or `latest`, and analyse it.

    Raises InputError for an unknown run, StoreError when the store cannot be read.
    """
    with gc_paused():
        return _loaded(store, run)


def _loaded(store: Store, run: str) -> LoadedRun:
    with store.read() as connection:
        row = runs.get_run(connection, run)
        text = runs.get_study(connection, row.study_id)
        study = parse_study(text.yaml, f"study of {row.name}")
        planned = cells_of_run(connection, row.id)
        used_up = used_up_cells(connection, row.id, study.limits.attempts_per_cell)
        tried = attempts.attempts_of_run(connection, row.id)
        machines = leases.vms_of_run(connection, row.id)
        known = facts.facts_of_run(connection, row.id)
        waits = WaitTotals()
        executions: dict[tuple[str, str], FormExecutions] = {}
        spent: list[Series] = []
        series: list[Series] = []
        own = study.workload.keeps_output and not any(fact.scope == runs.IMPORTED for fact in known)
        for one in timed(connection, row.id):
            waits.add(one)
            add_executions(executions, one)
            spent.append(one.series)
            series.append(read_again(study.workload, one) if own else one.series)
    names = {vm.id: vm.name for vm in machines}
    others = set(names.values()) - set(study.vms)
    if others:  # the report has no place for them
        raise StoreError(
            f"The store is damaged: {row.name} has a VM that its study does not name, "
            f"{escaped(min(others))!r}.",
            fix="Restore a copy of it; do not delete it: it holds VM baselines.",
        )
    design = design_of(study, {cell.label for cell in planned})
    result = analyse(series, cell_records(planned, tried, names, known, used_up), design)
    return LoadedRun(
        row,
        study,
        text.yaml,
        text.sha256,
        result,
        machines,
        planned,
        tried,
        known,
        waits.by_form(),
        waits.by_arm(),
        tuple(executions.values()),
        iteration_seconds(spent, study.design.iterations),
    )
