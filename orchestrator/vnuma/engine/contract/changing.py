"""The changing part of a contract: a run of one cell that leases the VM as any run does, and restores it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyVmomi import vim

from vnuma.domain.contract.belief import Beliefs
from vnuma.domain.study.order import PlannedCell
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.change import Change, Edit, change_back, change_to, with_lock_reservation
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power, Value
from vnuma.engine.access.context import VmContext, vm_of_run
from vnuma.engine.access.places import store_url
from vnuma.engine.access.target import VmTarget
from vnuma.engine.audit.journal import journal_of
from vnuma.engine.cell.power_switch import PowerSwitch
from vnuma.engine.cell.shape import change_document, predict_for, prediction_document
from vnuma.engine.lease.attempt import Attempt, finish, step
from vnuma.engine.lease.baseline_document import baseline_settings
from vnuma.engine.lease.identity import find_own
from vnuma.engine.lease.supervision import claim_supervision, heartbeat
from vnuma.engine.lease.vcenter_retry import on_vsphere
from vnuma.engine.run.next_cell import NoCell, claim_next_cell
from vnuma.engine.run.oversight import Asked, Work, stop_signals
from vnuma.engine.run.run_outcome import worst_of
from vnuma.engine.run.start import take_over_target
from vnuma.engine.run.supervise import restore_vms
from vnuma.errors import (
    Interrupted,
    LeaseLost,
    NotAtBaseline,
    ReadBackDiffers,
    RestoreConflict,
    StoreError,
    VmHeld,
    VnumaError,
)
from vnuma.store import attempts, cells, facts, runs, vms
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Outcome, Run, RunState
from vnuma.vsphere import apply, power, read
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.contract.asked import WHILE_OFF, WHILE_ON, ChangedVm, KeyStays, number, settings_now
from vnuma.vsphere.contract.off import DEFAULT, KEY, key_spec

Ask = Callable[["LeasedWriter", Beliefs[ChangedVm]], None]
"""Checks assumptions with a writer that changes the VM."""

Say = Callable[[str], None]

NOTHING = "Nothing was changed."


@dataclass(frozen=True)
class ChangingOutcome:
    """How the changing part ended: what it left on the VM, as a sentence, and what interrupted it."""

    leftover: str
    error: Exception | None


@dataclass(frozen=True)
class LeasedWriter:
    """Changes one VM under its lease. Changes are in the store and the audit log before they are made."""

    context: VmContext
    attempt: Attempt
    session: Session
    ref: VmRef
    stopping: Asked
    predicted: Mapping[str, object]
    written: list[Edit] = field(default_factory=list)

    def submit(self, edits: Iterable[Edit], spec: vim.vm.ConfigSpec) -> None:
        """See `vsphere.contract.asked.Writer`. Raises Interrupted after a request to stop."""
        with self._noted(tuple(edits)):
            apply.submit(self.session, self.ref, spec, fence=self.fence)

    def reconfigure(self, change: Change) -> VmFacts:
        """See `vsphere.contract.asked.Writer`. A value that reads back differently is restored too."""
        before = settings_now(self.session, self.ref)
        with self._noted(with_lock_reservation(change, before)):
            try:
                return apply.reconfigure(self.session, self.ref, change, fence=self.fence)
            except ReadBackDiffers as error:
                differs = error
        with self._noted(change_to(before, settings_now(self.session, self.ref)).edits):
            raise differs

    def take_back(self, key: str, before: Value) -> None:
        try:
            now = settings_now(self.session, self.ref).get(key)
            if now == before:
                return
            with self._noted((Edit(key, now, before),)):
                spec = key_spec(key, str(before or ""))
                apply.submit(self.session, self.ref, spec, fence=self.context.fence)
        except LeaseLost:
            raise
        except VnumaError as error:
            raise KeyStays(
                f"The extraConfig key {key}, written for this check, could not be removed before "
                f"{self.context.vm.name} was restored: {error.what}",
                fix=error.fix,
            ) from error

    def fence(self) -> None:
        """Raises LeaseLost without the lease, Interrupted after Ctrl-C."""
        if self.stopping.count:
            raise Interrupted("Stopped on request.")
        self.context.fence()

    @contextmanager
    def _noted(self, edits: tuple[Edit, ...]) -> Iterator[None]:
        self.written.extend(edit for edit in edits if edit not in self.written)
        with self.context.store.write() as connection:
            attempts.save_plan(
                connection,
                self.attempt.id,
                self.context.token,
                intended=self.attempt.settings(self.context).model_dump(mode="json"),
                change=change_document(self.written),
                predicted=self.predicted,
            )
        with journal_of(self.context).change("contract", edits):
            yield


def on_the_clone(
    target: VmTarget, vm: VmFacts, inventory: Path, simulated: str | None, ask: Ask, say: Say
) -> ChangingOutcome:
    """Take this VM, check each assumption that needs a change, and always restore the VM.

    Another VM that has its name by then is refused. Raises what the store raises before the run exists.
    """
    address = store_url()
    store = open_store(address)
    text = _study_text(target, vm)
    study = parse_study(text, "contract")
    run = _create(store, target, vm, text, inventory, simulated)
    claim_supervision(store, run)
    problems: list[Exception] = []
    with stop_signals(run, [target.name]) as stopping, heartbeat(store, run):
        try:
            context = take_over_target(VmContext(store, run, study, vm_of_run(store, run, target), target))
            with store.write() as connection:
                runs.set_run_state(connection, run.id, RunState.RUNNING)
            _ask_on(context, _claimed(context), stopping, ask, say)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told once the VM is back
            problems.append(error)
        say(f"Restoring {target.name}, if anything was changed.")
        work = Work(store, address, run, study, {target.name: target}, inventory)
        restored, away = restore_vms(work)
        problems += away
        _close(store, run, problems, stopping)
    words = "; ".join(one.words for one in restored)
    left = f"Restored: {words}." if restored else "" if away else NOTHING
    return ChangingOutcome(left, worst_of(problems) if problems else None)


def _close(store: Store, run: Run, problems: list[Exception], stopping: Asked) -> None:
    """Store the run's final state. A store that cannot be written is one more problem."""
    if any(isinstance(problem, RestoreConflict) for problem in problems):
        state = RunState.CONFLICT
    elif stopping.count and not any(isinstance(problem, NotAtBaseline) for problem in problems):
        state = RunState.STOPPED
    else:
        state = RunState.FAILED if problems else RunState.FINISHED
    try:
        with store.write() as connection:
            runs.set_run_state(connection, run.id, state)
            runs.clear_supervisor(connection, run)
    except StoreError as error:
        problems.append(error)


def _study_text(target: VmTarget, vm: VmFacts) -> str:
    """A study of one cell in the VM's present shape; it is never measured."""
    vcpus = number(vm.settings, "numCPUs")
    shown = vm.settings["numCoresPerSocket"]
    cores = shown if isinstance(shown, int) and shown else 1
    shape = f"{vcpus // cores}x{cores}"
    design = {"blocks": 1, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1}
    return json.dumps(
        {
            "name": "contract",
            "title": "vnuma's assumptions about vSphere, checked on one VM",
            "vm": target.name,
            "vcpus": vcpus,
            "reference": shape,
            "arms": [shape],
            "design": design,
            "workload": {"name": "cross_join", "sizes": [20], "forms": ["server"]},
            "limits": {"attempts_per_cell": 1},
        }
    )


def _create(
    store: Store, target: VmTarget, vm: VmFacts, text: str, inventory: Path, simulated: str | None
) -> Run:
    study = parse_study(text, "contract")
    with store.write() as connection:
        saved = runs.save_study(connection, study.name, text)
        run = runs.create_run(
            connection, saved, seed=study.design.seed, simulated=simulated, inventory=str(inventory.resolve())
        )
        facts.add_run_facts(connection, run.id, runs.CONTRACT, {"measures": "nothing"})
        row = vms.add_vm(
            connection, run.id, vm_key=vm.key, name=target.name, path=vm.path, esxi_host=vm.host_name
        )
        label = study.labels[0]
        cells.add_cells(connection, row.id, [PlannedCell(1, 1, label, label)])
    return run


def _claimed(context: VmContext) -> Attempt:
    """Claim the run's one cell. Raises VmHeld while another VM of the host is being measured."""
    claimed = claim_next_cell(context)
    if isinstance(claimed, NoCell):
        raise VmHeld(f"{context.vm.name} was not changed: {claimed.why}.", fix="vnuma status")
    return Attempt.of(claimed)


def _ask_on(context: VmContext, attempt: Attempt, stopping: Asked, ask: Ask, say: Say) -> None:
    """Shut the VM down, check, power it on in its own shape, check again."""
    name = context.vm.name

    def switch_of(writer: LeasedWriter) -> PowerSwitch:
        return replace(PowerSwitch.of(context, writer.session, writer.ref), fence=writer.fence)

    def off(session: Session, ref: VmRef, _tries: int) -> LeasedWriter:
        vm, host = read.read_vm_on_host(session, ref)
        predicted = prediction_document(predict_for(vm, host, vm.settings))
        writer = LeasedWriter(context, attempt, session, ref, stopping, predicted)
        switch_of(writer).require_on_possible()
        if vm.power is not Power.OFF:
            say(f"Shutting {name} down; Ctrl-C stops and restores it.")
            switch_of(writer).off(back_on=False)
        return writer

    def on(session: Session, ref: VmRef, tries: int) -> None:
        state, host_moid = read.read_power(session, ref)
        if tries > 1 and state is Power.ON:  # the request was sent; only its answer was lost
            power.wait_for_guest(session, ref, timeout_s=context.study.power.tools_timeout_s)
            return
        now = replace(writer, session=session, ref=ref)
        _to_own_shape(context, now)
        say(f"Powering {name} on.")
        switch_of(now).on(host_moid)

    with step(context, attempt, "shutdown"):
        writer = on_vsphere(context, attempt, "shutdown", off)
        say(f"Checking {len(WHILE_OFF)} assumptions while it is off.")
        _ask(writer, ask, WHILE_OFF)
    with step(context, attempt, "power_on"):
        on_vsphere(context, attempt, "power_on", on)
    with step(context, attempt, "verify"):
        say(f"Checking {len(WHILE_ON)} assumptions while it runs.")
        _ask(writer, ask, WHILE_ON)
        writer.fence()
    finish(
        context,
        attempt,
        Outcome.INVALID,
        "not_measured",
        "vnuma contract checked its assumptions and measured nothing.",
    )


def _ask(writer: LeasedWriter, ask: Ask, beliefs: Beliefs[ChangedVm]) -> None:
    with writer.context.vsphere() as session:
        ask(replace(writer, session=session, ref=find_own(session, writer.context.vm)), beliefs)


def _to_own_shape(context: VmContext, writer: LeasedWriter) -> None:
    """Undo everything except the one key, so that the VM boots as it always does."""
    now = settings_now(writer.session, writer.ref)
    back = change_back(now, baseline_settings(context.vm))
    key = change_to(now, {KEY: DEFAULT})
    kept = tuple(edit for edit in back if edit.setting != KEY)
    with suppress(ReadBackDiffers):  # the restore checks it again
        writer.reconfigure(Change((*kept, *key)))
