"""The changing part of a contract: a run of one cell that holds the VM as any run does, and puts it back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyVmomi import vim

from vnuma.domain.contract.belief import Beliefs, Judged
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.change import Change, Edit, change_back, change_to, with_moved
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.target import Target
from vnuma.engine.cell.boot import power_on
from vnuma.engine.cell.guest_shutdown import PowerRules, require_way_back, shut_down
from vnuma.engine.cell.shape import change_document, predict_for, prediction_document
from vnuma.engine.lease.attempt import Attempt, finish, step, undo_at_end
from vnuma.engine.lease.audit import journal_of
from vnuma.engine.lease.baseline import baseline_settings
from vnuma.engine.lease.context import VmContext, store_url, vm_of_run
from vnuma.engine.lease.supervision import claim_supervision, heartbeat
from vnuma.engine.lease.vcenter_retry import VCenterRetry
from vnuma.engine.run.claim import NoCell, claim
from vnuma.engine.run.start import take
from vnuma.engine.run.supervise import Asked, restore_vms, stop_signals
from vnuma.errors import Interrupted, ReadBackDiffers, VmHeld
from vnuma.store import attempts, cells, runs, vms
from vnuma.store.open import Store, open_store
from vnuma.store.rows import NewCell, Run
from vnuma.store.states import Outcome, RunState
from vnuma.vsphere import apply, read
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.contract.asked import WHILE_OFF, WHILE_ON, ChangedVm, number, settings_now
from vnuma.vsphere.contract.off import DEFAULT, KEY
from vnuma.vsphere.refs import VmRef

Ask = Callable[[Session, "LeasedWriter", Beliefs[ChangedVm]], list[Judged]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class LeasedWriter:
    """Changes one VM under its lease. What it may change is in store and audit log before it is changed."""

    context: VmContext
    attempt: Attempt
    session: Session
    ref: VmRef
    stopping: Asked
    predicted: Mapping[str, object]
    written: list[Edit] = field(default_factory=list)

    def submit(self, edits: Iterable[Edit], spec: vim.vm.ConfigSpec) -> None:
        """See `vsphere.contract.asked.Writer`. Raises Interrupted once the user has asked to stop."""
        with self._noted(tuple(edits)):
            apply.submit(self.session, self.ref, spec, fence=self.fence)

    def reconfigure(self, change: Change) -> VmFacts:
        """See `vsphere.contract.asked.Writer`. What reads back otherwise is ours to put back too."""
        before = settings_now(self.session, self.ref)
        with self._noted(with_moved(change, before)):
            try:
                return apply.reconfigure(self.session, self.ref, change, fence=self.fence)
            except ReadBackDiffers as error:
                differs = error
        with self._noted(change_to(before, settings_now(self.session, self.ref)).edits):
            raise differs

    def fence(self) -> None:
        """Refuse to go on without the lease, or after Ctrl-C. Raises LeaseLost, Interrupted."""
        if self.stopping.count:
            raise Interrupted("Stopped; the VM is put back.")
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


def on_the_clone(target: Target, inventory: Path, ask: Ask, say: Say) -> tuple[list[Judged], str]:
    """What came of every belief that needs a change, and how the VM was put back, as a sentence.

    Raises VmHeld when somebody else has the VM, NotAtBaseline when it could not be put back, Interrupted
    after Ctrl-C, when it was.
    """
    store = open_store(store_url())
    with connect(vcenter(target)) as session:
        vm = read.read_vm(session, read.find_vm(session, target.vm))
    text = _study_text(target, vm)
    study = parse_study(text, "contract")
    run = _create(store, target, vm, text, inventory)
    claim_supervision(store, run)
    restored: list[str] = []

    def back() -> None:
        say(f"Putting {target.name} back as it was.")
        done, problems = restore_vms(store, run, study, {target.name: target})
        restored.extend(one.words for one in done)
        with store.write() as connection:
            runs.set_run_state(connection, run.id, RunState.FAILED if problems else RunState.FINISHED)
            runs.clear_supervisor(connection, run.id)
        if problems:
            raise problems[0]

    with stop_signals() as stopping, heartbeat(store, run), undo_at_end(back):
        row = vm_of_run(store, run, target)
        context = take(store, run, study, row, target, VCenterRetry(study.power.vcenter_retry_s))
        with store.write() as connection:
            runs.set_run_state(connection, run.id, RunState.RUNNING)
        found = _ask_on(context, _claimed(context), stopping, ask, say)
    return found, f"Put back: {'; '.join(restored)}."


def _study_text(target: Target, vm: VmFacts) -> str:
    """A study of one cell in the shape that the VM has: whoever resumes the run measures that."""
    vcpus = number(vm.settings, "numCPUs")
    shown = vm.settings["numCoresPerSocket"]
    cores = shown if isinstance(shown, int) and shown else 1
    shape = f"{vcpus // cores}x{cores}"
    design = {"blocks": 1, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1}
    return json.dumps(
        {
            "name": "contract",
            "title": "What vnuma believes of vSphere, asked of one VM",
            "vm": target.name,
            "vcpus": vcpus,
            "reference": shape,
            "arms": [shape],
            "design": design,
            "workload": {"name": "cross_join", "sizes": [20], "forms": ["server"]},
            "limits": {"attempts_per_cell": 1},
        }
    )


def _create(store: Store, target: Target, vm: VmFacts, text: str, inventory: Path) -> Run:
    study = parse_study(text, "contract")
    with store.write() as connection:
        saved = runs.save_study(connection, study.name, text)
        run = runs.create_run(connection, saved, seed=study.design.seed, inventory=str(inventory.resolve()))
        row = vms.add_vm(
            connection, run.id, vm_key=vm.key, name=target.name, path=vm.path, esxi_host=vm.host_name
        )
        label = study.labels[0]
        cells.add_cells(connection, row.id, [NewCell(label, label, 1, 1)])
    return run


def _claimed(context: VmContext) -> Attempt:
    """The run's one cell. Raises VmHeld while another VM of the host is being measured."""
    claimed = claim(context)
    if isinstance(claimed, NoCell):
        raise VmHeld(f"{context.vm.name} was not touched: {claimed.why}.", fix="vnuma status")
    return Attempt.of(claimed)


def _ask_on(context: VmContext, attempt: Attempt, stopping: Asked, ask: Ask, say: Say) -> list[Judged]:
    """Shut the VM down, ask, power it on in its own shape, ask again."""
    rules, journal = PowerRules.of(context.study), journal_of(context)
    with context.vsphere() as session:
        ref = read.find_vm(session, context.target.in_vcenter().vm)
        vm, host = read.read_vm_on_host(session, ref)
        predicted = prediction_document(predict_for(vm, host, vm.settings))
        writer = LeasedWriter(context, attempt, session, ref, stopping, predicted)
        with step(context, attempt, "shutdown"):
            require_way_back(session, ref)
            if vm.power is not Power.OFF:
                say(f"Shutting {context.vm.name} down; Ctrl-C stops and puts it back.")
                shut_down(session, ref, rules, writer.fence, journal)
            say(f"Asking {len(WHILE_OFF)} beliefs while it is off.")
            found = ask(session, writer, WHILE_OFF)
            _to_own_shape(context, writer)
        with step(context, attempt, "power_on"):
            say(f"Powering {context.vm.name} on.")
            power_on(
                session,
                ref,
                vm.host_moid,
                tools_timeout_s=rules.tools_s,
                task_timeout_s=rules.task_s,
                fence=writer.fence,
                journal=journal,
            )
        with step(context, attempt, "verify"):
            say(f"Asking {len(WHILE_ON)} beliefs while it runs.")
            found += ask(session, writer, WHILE_ON)
            writer.fence()
    finish(context, attempt, Outcome.VALID, None, None)
    return found


def _to_own_shape(context: VmContext, writer: LeasedWriter) -> None:
    """Take back all but the one key, so that the VM boots as it always does."""
    now = settings_now(writer.session, writer.ref)
    back = change_back(now, baseline_settings(context.vm))
    key = change_to(now, {KEY: DEFAULT})
    kept = tuple(edit for edit in back if edit.setting != KEY)
    with suppress(ReadBackDiffers):  # the restore looks at it again
        writer.reconfigure(Change((*kept, *key)))
