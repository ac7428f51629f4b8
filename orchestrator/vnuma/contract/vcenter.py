"""Ask a vCenter or ESXi host for every belief about vSphere: a VM is read, and a test clone is changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from vnuma.contract.suite import Answers, Differs, Judged, Verdict, ask, beliefs
from vnuma.domain.study.order import PlannedCell
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.change import Change, Edit, change_back, change_to, with_lock_reservation
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power, Settings, Value
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.context import VmContext, vm_of_run
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.places import store_url
from vnuma.engine.access.target import Target
from vnuma.engine.audit.log import journal_of
from vnuma.engine.cell.shape import PowerSwitch, change_document, predict_for, prediction_document
from vnuma.engine.lease.attempt import finish, step
from vnuma.engine.lease.baseline import baseline_settings
from vnuma.engine.lease.supervision import claim_supervision, heartbeat
from vnuma.engine.lease.vcenter_retry import on_vsphere
from vnuma.engine.lease.whose_vm import find_own
from vnuma.engine.preflight.findings import Permit
from vnuma.engine.restore.restore import worst_first
from vnuma.engine.run.next_cell import NoCell, claim_next_cell
from vnuma.engine.run.oversight import StopRequests, SupervisedRun, stop_signals
from vnuma.engine.run.run_outcome import state_away
from vnuma.engine.run.start import take_over_target
from vnuma.engine.run.supervise import restore_vms
from vnuma.errors import (
    InputError,
    Interrupted,
    LeaseLost,
    NotAtBaseline,
    ReadBackDiffers,
    ReconfigureRefused,
    StoreError,
    VCenterUnreachable,
    VmHeld,
    VnumaError,
)
from vnuma.store import attempts, cells, facts, leases, runs
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Claim, Outcome, Run, RunState
from vnuma.vsphere import apply, power, read
from vnuma.vsphere.apply import specs_for, unmet
from vnuma.vsphere.connect import connect
from vnuma.vsphere.facts import paths, settings_of
from vnuma.vsphere.faults import NotNow, name_behind, unexpected
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.session import Session, VmRef
from vnuma.words.provenance import scenario_of

Consent = Callable[[VmFacts, str | None], None]
"""Called with the VM that is about to be changed and the lab's scenario; raises to refuse."""


def ask_vcenter(
    target: Target,
    inventory: Inventory,
    *,
    consent: Consent,
    read_only: bool = False,
    say: Say = lambda _: None,
) -> Answers:
    """Ask a VM's vCenter; what changes the VM, only of a test clone.

    `consent` is called before the first change, and `say` with each step. Raises what `connect` and `consent`
    raise, and VmNotFound. Whatever ends the changing part early is part of the answers: what `_still` raises,
    VmHeld, Interrupted, an unreachable vCenter, NotAtBaseline.
    """
    judged: list[Judged] = []
    with connect(vcenter(target)) as session:
        asked = AskedVm(session, find_vm(session, target.vm))
        vm = asked.vm()
        of: dict[str, object] = {
            "kind": "vcenter" if session.about.is_vcenter else "esxi",
            "api": session.about.api_version,
            "server": str(session.about.release),
            "hardware_version": vm.hardware_version,
        }
        simulated = scenario_of(session.about.name)
        ask("read", lambda: nullcontext(asked), asked.explain, judged)
    why_not = "only questions that need no change were asked" if read_only else _why_not(target, vm.moid)
    left, error = NOTHING, None
    if not why_not:
        consent(vm, simulated)
        try:
            left, error = ask_clone(target, _still(target, vm), inventory, simulated, judged, say)
        except VnumaError as refusal:
            error = refusal
    done = {one.id for one in judged}
    for one in (*beliefs("off"), *beliefs("on")):
        if one.id not in done:
            judged.append(Judged(one.id, Verdict.NOT_EVALUABLE, why_not or "not asked: it ended earlier"))
    return Answers(of, left, tuple(judged), simulated, error)


def _still(target: Target, vm: VmFacts) -> VmFacts:
    """Find the VM that was consented to again, since consent may take hours.

    Raises InputError when its name now means another VM, PreflightBlocked when it may no longer be changed,
    VmNotFound.
    """
    with connect(vcenter(target)) as session:
        now = read_vm(session, find_vm(session, target.vm))
    if now.key != vm.key:
        raise InputError(
            f"{target.vm} is no longer the VM that was to be changed: its instance UUID is "
            f"{now.instance_uuid}, not {vm.instance_uuid}.",
            fix="Correct vnuma_vm in the inventory if necessary, then run: vnuma contract --vcenter "
            f"{target.name}",
        )
    permit = Permit()
    permit.require(target.name, permit.tagged(target, now.moid), test_clone=target.test_clone)
    return now


def _why_not(target: Target, moid: str) -> str | None:
    """Why the VM must not be changed for this; None if it may be."""
    tagged = Permit().tagged(target, moid)
    if tagged.refusal:
        return "the VM lacks the vSphere tag that its inventory requires"
    return None if target.test_clone or tagged.permits else "the VM is not marked as a test clone"


API = "https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/"

TOPOLOGY_HARDWARE = 20
"""The virtual hardware version from which a VM has automatic cores per socket and virtualNuma (ESXi 8.0)."""


def number(settings: Settings, name: str) -> int:
    """A numeric setting. Skips the belief where it is not shown."""
    found = settings.get(name)
    return found if isinstance(found, int) else pytest.skip(f"{name} is not shown")


def cpus_for(settings: Settings) -> tuple[int, ...]:
    """As many logical CPUs as the VM has vCPUs."""
    return tuple(range(number(settings, "numCPUs")))


def other_cores(settings: Settings) -> int:
    """Another possible number of cores per socket. Skips the belief of a VM with one vCPU."""
    vcpus, now = number(settings, "numCPUs"), settings["numCoresPerSocket"]
    if vcpus < 2:
        pytest.skip("a VM with one vCPU")
    return 1 if now == vcpus else vcpus


def one_of(seen: object, *words: str) -> None:
    """Raise Differs unless what was seen is one of these."""
    if str(seen) not in words:
        raise Differs(str(seen))


@dataclass(frozen=True)
class AskedVm:
    """One VM at a vCenter or ESXi host."""

    session: Session
    ref: VmRef

    def values(self, *paths: str) -> dict[str, Any]:
        """The VM's properties that are set."""
        return dict(self.session.read(self.ref, paths).values)

    def value(self, path: str) -> Any:
        """One property; None if unset."""
        return self.values(path).get(path)

    def vm(self) -> VmFacts:
        return read_vm(self.session, self.ref)

    def settings(self) -> Settings:
        """The settings, without the location that `read_vm` reads."""
        return settings_of(self.session.read(self.ref, paths()).values)

    def host(self) -> vim.HostSystem:
        """The VM's host. Skips the belief where it is not shown."""
        found: vim.HostSystem | None = self.value("runtime.host")
        return found or pytest.skip("the VM's host is not shown")

    def of_host(self, path: str) -> Any:
        """A property of the VM's host. Skips the belief where it is not shown."""
        found = self.session.read(self.host(), (path,)).values.get(path)
        return pytest.skip(f"the host's {path} is not shown") if found is None else found

    def require_topology_fields(self) -> None:
        """Skip the belief where the VM has no automatic topology."""
        found = self.vm().hardware_version
        if found < TOPOLOGY_HARDWARE or not self.session.knows(vim.vm.ConfigSpec, "virtualNuma"):
            pytest.skip(f"virtual hardware {found}, API {self.session.about.api_version}")

    def explain(self, error: Exception) -> tuple[Verdict, str]:
        """The error's type, by the vSphere fault's name where there is one; its text would name the server.

        Raises an error that ends the asking: Ctrl-C, a lost lease, an unreachable vCenter.
        """
        if isinstance(error, vmodl.MethodFault):
            error = self.session.translate(error) or unexpected(error, "vSphere")
        if isinstance(error, AttributeError | LookupError | TypeError | ValueError):
            # A missing property, or one of an unexpected type, wherever the belief read it.
            return Verdict.DIFFERS, f"an answer of an unexpected form ({type(error).__name__})"
        away = isinstance(error, VCenterUnreachable) and not isinstance(error, NotNow)
        if away or isinstance(error, Interrupted | LeaseLost) or not isinstance(error, VnumaError):
            raise error
        return Verdict.NOT_EVALUABLE, name_behind(error)


KEY = "numa.vcpu.min"
"""An extraConfig key that belongs to the baseline. Its default is written, so that nothing else changes."""
DEFAULT = "9"

ACCEPTED = "accepted"
"""What was seen of a change that was not refused."""

NOTHING = "Nothing was changed."

Say = Callable[[str], None]


@dataclass(frozen=True)
class Clone(AskedVm):
    """A test clone under its lease. Changes are in the store and the audit log before they are made."""

    context: VmContext
    attempt: Claim
    stopping: StopRequests
    predicted: Mapping[str, object]
    written: list[Edit] = field(default_factory=list)

    def fence(self) -> None:
        """Raises LeaseLost without the lease, Interrupted after Ctrl-C."""
        if self.stopping.count:
            raise Interrupted("Stopped on request.")
        self.context.fence()

    def asked_for(self, **desired: Value) -> Settings:
        """The VM's settings after a change to these.

        Raises Differs if it is refused or reads back differently; skips the belief if the API lacks it.
        """
        change = change_to(self.settings(), desired)
        try:
            return self.reconfigure(change).settings
        except ReadBackDiffers as error:
            now = unmet(change, self.settings())
            seen = ", ".join(f"{edit.setting} reads {edit.before} instead of {edit.after}" for edit in now)
            raise Differs(seen or "not immediately as requested") from error
        except ReconfigureRefused as error:
            if error.__cause__ is None:  # never sent
                pytest.skip(f"API {self.session.about.api_version}")
            raise Differs(f"{name_behind(error)} instead of {ACCEPTED}") from error

    def refusal(self, **desired: Value) -> str:
        """The name of the fault that refuses a change to these, or `accepted`."""
        now = self.settings()
        edits = tuple(Edit(name, now.get(name), value) for name, value in desired.items())
        (spec,) = specs_for(Change(edits), now)
        seen = self.refusal_of(edits, spec)
        if seen == ACCEPTED:  # later beliefs need the original VM
            with suppress(Differs, pytest.skip.Exception):
                self.asked_for(**{name: now.get(name) for name in desired})
        return seen

    def refusal_of(self, edits: Iterable[Edit], spec: vim.vm.ConfigSpec) -> str:
        """The same for the caller's own request, which may make these edits."""
        try:
            with self._noted(tuple(edits)):
                apply.submit(self.session, self.ref, spec, fence=self.fence)
        except ReconfigureRefused as error:
            return name_behind(error)
        return ACCEPTED

    def reconfigure(self, change: Change) -> VmFacts:
        """Make a change and read the VM back. A value that reads back differently is restored too.

        Raises ReconfigureRefused, ReadBackDiffers.
        """
        before = self.settings()
        with self._noted(with_lock_reservation(change, before)):
            try:
                return apply.reconfigure(self.session, self.ref, change, fence=self.fence)
            except ReadBackDiffers as error:
                differs = error
        with self._noted(change_to(before, self.settings()).edits):
            raise differs

    @contextmanager
    def _noted(self, edits: tuple[Edit, ...]) -> Iterator[None]:
        self.written.extend(edit for edit in edits if edit not in self.written)
        with self.context.store.write() as connection:
            attempts.save_plan(
                connection,
                self.attempt.id,
                self.context.token,
                intended=self.context.study.arm(self.attempt.arm).model_dump(mode="json"),
                change=change_document(self.written),
                predicted=self.predicted,
            )
        with journal_of(self.context).change("contract", edits):
            yield

    def ask(self, room: str, judged: list[Judged]) -> None:
        """Ask a room's beliefs in a session of its own."""
        with self.context.vsphere() as session:
            own = replace(self, session=session, ref=find_own(session, self.context.vm))
            ask(room, lambda: nullcontext(own), own.explain, judged)

    def switch(self) -> PowerSwitch:
        return replace(PowerSwitch.of(self.context, self.session, self.ref), fence=self.fence)

    def to_own_shape(self) -> None:
        """Undo everything except the one key, so that the VM boots as it always does."""
        now = self.settings()
        back = change_back(now, baseline_settings(self.context.vm))
        kept = tuple(edit for edit in back if edit.setting != KEY)
        with suppress(ReadBackDiffers):  # the restore checks it again
            self.reconfigure(Change((*kept, *change_to(now, {KEY: DEFAULT}))))


def ask_clone(
    target: Target, vm: VmFacts, inventory: Inventory, simulated: str | None, judged: list[Judged], say: Say
) -> tuple[str, Exception | None]:
    """Take this VM, ask what needs a change, and always restore the VM: what is left on it, as a sentence,
    and what ended it early.

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
            _ask_on(context, _claimed(context), stopping, judged, say)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told once the VM is back
            problems.append(error)
        say(f"Restoring {target.name}, if anything was changed.")
        restored, away = restore_vms(
            SupervisedRun(store, address, run, study, {target.name: target}, inventory)
        )
        problems += away
        _close(store, run, problems, stopping)
    words = "; ".join(one.words for one in restored)
    left = f"Restored: {words}." if restored else "" if away else NOTHING
    return left, next(iter(worst_first(problems)), None)


def _close(store: Store, run: Run, problems: list[Exception], stopping: StopRequests) -> None:
    """Store the run's final state. A store that cannot be written is one more problem."""
    away = [problem for problem in problems if isinstance(problem, NotAtBaseline)]
    if away:
        state = state_away(away)
    elif stopping.count:
        state = RunState.STOPPED
    else:
        state = RunState.FAILED if problems else RunState.FINISHED
    try:
        with store.write() as connection:
            runs.set_run_state(connection, run.id, state)
            runs.clear_supervisor(connection, run)
    except StoreError as error:
        problems.append(error)


def _study_text(target: Target, vm: VmFacts) -> str:
    """A study of one cell in the VM's present shape; it is never measured."""
    vcpus, shown = vm.settings["numCPUs"], vm.settings["numCoresPerSocket"]
    cores = shown if isinstance(shown, int) and shown else 1
    shape = f"{vcpus // cores}x{cores}" if isinstance(vcpus, int) else "1x1"
    return json.dumps(
        {
            "name": "contract",
            "title": "vnuma's assumptions about vSphere, checked on one VM",
            "vm": target.name,
            "vcpus": vcpus,
            "reference": shape,
            "arms": [shape],
            "design": {"blocks": 1, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1},
            "workload": {"name": "cross_join", "sizes": [20], "forms": ["server"]},
            "limits": {"attempts_per_cell": 1},
        }
    )


def _create(
    store: Store, target: Target, vm: VmFacts, text: str, inventory: Inventory, simulated: str | None
) -> Run:
    study = parse_study(text, "contract")
    with store.write() as connection:
        saved = runs.save_study(connection, study.name, text)
        run = runs.create_run(
            connection,
            saved,
            seed=study.design.seed,
            simulated=simulated,
            inventory=str(inventory.path.resolve()),
        )
        facts.add_run_facts(connection, run.id, runs.CONTRACT, {"measures": "nothing"})
        row = leases.add_vm(
            connection, run.id, vm_key=vm.key, name=target.name, path=vm.path, esxi_host=vm.host_name
        )
        label = study.labels[0]
        cells.add_cells(connection, row.id, [PlannedCell(1, 1, label, label)])
    return run


def _claimed(context: VmContext) -> Claim:
    """Claim the run's one cell. Raises VmHeld while another VM of the host is being measured."""
    claimed = claim_next_cell(context)
    if isinstance(claimed, NoCell):
        raise VmHeld(f"{context.vm.name} was not changed: {claimed.why}.", fix="vnuma status")
    return claimed


def _ask_on(
    context: VmContext, attempt: Claim, stopping: StopRequests, judged: list[Judged], say: Say
) -> None:
    """Shut the VM down, ask, power it on in its own shape, ask again."""
    name = context.vm.name

    def off(session: Session, ref: VmRef, _tries: int) -> Clone:
        vm, host = read.read_vm_on_host(session, ref)
        predicted = prediction_document(predict_for(vm, host, vm.settings))
        clone = Clone(session, ref, context, attempt, stopping, predicted)
        clone.switch().require_on_possible()
        if vm.power is not Power.OFF:
            say(f"Shutting {name} down; Ctrl-C stops and restores it.")
            clone.switch().off(back_on=False)
        return clone

    def on(session: Session, ref: VmRef, tries: int) -> None:
        state, host_moid = read.read_power(session, ref)
        if tries > 1 and state is Power.ON:  # the request was sent; only its answer was lost
            power.wait_for_guest(session, ref, timeout_s=context.study.power.tools_timeout_s)
            return
        now = replace(clone, session=session, ref=ref)
        now.to_own_shape()
        say(f"Powering {name} on.")
        now.switch().on(host_moid)

    with step(context, attempt, "shutdown"):
        clone = on_vsphere(context, attempt, "shutdown", off)
        say(f"Checking {len(beliefs('off'))} assumptions while it is off.")
        clone.ask("off", judged)
    with step(context, attempt, "power_on"):
        on_vsphere(context, attempt, "power_on", on)
    with step(context, attempt, "verify"):
        say(f"Checking {len(beliefs('on'))} assumptions while it runs.")
        clone.ask("on", judged)
        clone.fence()
    reason = "vnuma contract checked its assumptions and measured nothing."
    finish(context, attempt, Outcome.INVALID, "not_measured", reason)
