"""Bring a VM into an arm's shape: shut the guest down, reconfigure, read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from types import MappingProxyType

from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.desired_settings import desired_settings, merge_over_own, own_values
from vnuma.domain.study.study import PowerRules
from vnuma.domain.topology.prediction import Prediction, host_shape, predict
from vnuma.domain.vm.change import Change, Edit, change_to, settings_after, with_lock_reservation
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Power, Settings, Value
from vnuma.engine.access.context import VmContext
from vnuma.engine.audit.log import Journal, journal_of
from vnuma.engine.cell import evidence
from vnuma.engine.instance.sql_identity import is_proven
from vnuma.engine.instance.sql_settings import SETTINGS, Boot
from vnuma.engine.lease.attempt import step
from vnuma.engine.lease.baseline import baseline_settings, refuse_foreign_changes
from vnuma.engine.lease.vcenter_retry import on_hypervisor, report_step
from vnuma.errors import (
    ArmImpossible,
    AttemptFailed,
    CertificateRejected,
    EnvironmentProblem,
    HostChanged,
    HostNotReady,
    LeaseLost,
    ShutdownTimeout,
    VCenterUnreachable,
    VnumaError,
)
from vnuma.store import attempts, cells
from vnuma.store.rows import Claim
from vnuma.vsphere import apply, power, read
from vnuma.vsphere.connect import Session, VmRef
from vnuma.workloads.interface import Document

WRITE_TRIES = 5
"""How often settings are compared and written when somebody writes to the VM meanwhile."""

_ELSEWHERE = (LeaseLost, VCenterUnreachable, CertificateRejected)
"""Errors after which nothing can be done: another process has the VM, or vCenter does not answer."""


def write_settings(
    switch: PowerSwitch,
    action: str,
    facts: VmFacts,
    decide: Callable[[VmFacts], Change],
    *,
    always_off: bool = False,
    back_on: bool = True,
) -> tuple[Change, VmFacts]:
    """Make the change that `decide` finds for the VM; returns it, and the VM as it reads afterwards.

    `facts` were just read. The VM is shut down first if the change needs it, or with `always_off`; it stays
    off. hostd, backups and Tools write to a VM just after a shutdown, so each try reads and decides anew.
    `decide` raises for a setting that somebody else changed. `back_on` is as in `PowerSwitch.off`. Raises
    ChangedMeanwhile after the last try.
    """
    change = decide(facts)
    if facts.power is not Power.OFF and (always_off or change.needs_power_off):
        switch.off(back_on=back_on)
        facts = read.read_vm(switch.session, switch.ref)
        change = decide(facts)
    for tries_left in reversed(range(WRITE_TRIES)):
        if not change:
            break
        try:
            with switch.journal.change(action, with_lock_reservation(change, facts.settings)):
                facts = apply.reconfigure(switch.session, switch.ref, change, seen=facts, fence=switch.fence)
            break
        except apply.ChangedMeanwhile:
            if not tries_left:
                raise
            facts = read.read_vm(switch.session, switch.ref)
            change = decide(facts)
    return change, facts


@contextmanager
def not_left_off(switch: PowerSwitch, ours: Callable[[], bool]) -> Iterator[None]:
    """After a failure, power on a VM that is off although it has to be on; the error says what became of it.

    `ours` tells whether it has to be on and was last powered off by us. It boots in its present shape, on any
    host that takes it.
    """
    try:
        yield
    except _ELSEWHERE:
        raise
    except VnumaError as error:
        if read.read_power(switch.session, switch.ref)[0] is Power.ON or not ours():
            raise
        try:
            switch.say("powering it on in its present shape")
            switch.on_again(None)
        except (AttemptFailed, EnvironmentProblem) as refused:
            became = f"It is off: {refused.what}"
        else:
            became = "It was powered on in its present shape."
        raise type(error)(f"{error.what}\n{became}", fix=error.fix) from error


Fence = Callable[[], None]

POWER_ON = (Edit("power", str(Power.OFF), str(Power.ON)),)
POWER_OFF = (Edit("power", str(Power.ON), str(Power.OFF)),)


@dataclass(frozen=True)
class PowerSwitch:
    """Powers one VM on and off in one vSphere session; each is in the journal before it is done."""

    session: Session
    ref: VmRef
    rules: PowerRules
    fence: Fence
    journal: Journal
    say: Callable[[str], None] = lambda _: None

    @classmethod
    def of(
        cls, context: VmContext, session: Session, ref: VmRef, say: Callable[[str], None] = lambda _: None
    ) -> PowerSwitch:
        """That of a cell's VM."""
        return cls(session, ref, context.study.power, context.fence, journal_of(context), say)

    def off(self, *, back_on: bool) -> None:
        """Shut down the guest of a running VM, and watch one that has begun to and is late.

        Raises ShutdownTimeout: the VM is on, and goes off later if its guest has begun to shut down.
        With `back_on` it is refused first where the VM could not be powered on again. The journal line is
        written when the guest is asked, since the VM may go off at any time after that. A vmware.log that is
        still missing is fetched now: the next power-on rotates it.
        """
        if back_on:
            self.require_on_possible()
        with ExitStack() as line:

            def ask() -> None:
                self.fence()
                if not begun:
                    line.enter_context(self.journal.change("power", POWER_OFF))
                    begun.append(True)

            begun: list[bool] = []
            try:
                power.shut_down(
                    self.session,
                    self.ref,
                    timeout_s=self.rules.shutdown_timeout_s,
                    on_timeout=self.rules.on_shutdown_timeout,
                    ask=self.rules.guest_is_asked_to,
                    fence=ask,
                )
            except ShutdownTimeout:
                if not begun or not self.is_late():
                    raise
                self.await_off()
            if not begun:  # it went off by itself while we waited for its Tools
                line.enter_context(self.journal.change("power", POWER_OFF))
        evidence.collect(self.journal, self.session, self.ref)

    def is_late(self) -> bool:
        """Whether a guest that was asked to shut down still does so; one asked to reboot comes back."""
        return self.rules.guest_is_asked_to == "shut_down" and power.is_shutting_down(self.session, self.ref)

    def await_off(self) -> None:
        """Watch a guest that is late until it is off, saying how long. Raises ShutdownTimeout, LeaseLost."""
        name = self.session.transport.name_of(self.ref)

        def tell(left_s: float) -> None:
            self.fence()
            self.say(f"{name} is still shutting down; watched for {left_s:.0f} s more")

        power.await_shutdown(self.session, self.ref, self.rules.late_shutdown_s, tell)

    def require_on_possible(self) -> None:
        """Raise HostNotReady if the VM's host could not power it on."""
        why = read.why_no_power_on(self.session, self.ref)
        if why:
            name = self.session.transport.name_of(self.ref)
            raise HostNotReady(
                f"{name} was not shut down, because it could not be powered on again: {why}",
                fix="End the host's maintenance or reconnect it; or move the VM, and start a new run there.",
            )

    def on(self, host_moid: str | None, noted: Callable[[datetime], None] = lambda _: None) -> None:
        """Power on on exactly that host, call `noted` with the time of it, and wait for the guest's Tools."""
        with self.journal.change("power", POWER_ON):
            noted(self._power_on(host_moid))
        power.wait_for_guest(self.session, self.ref, timeout_s=self.rules.tools_timeout_s)

    def on_again(self, host_moid: str | None) -> datetime | None:
        """Power on at that host, and return when; None if DRS or HA placed it elsewhere, which is said."""
        with self.journal.change("power", POWER_ON):
            try:
                return self._power_on(host_moid)
            except HostChanged as moved:
                self.say(f"{moved.what} {moved.fix or ''}")
                return None

    def _power_on(self, host_moid: str | None) -> datetime:
        limit_s = self.rules.task_timeout_s
        return power.power_on(
            self.session, self.ref, host_moid=host_moid, fence=self.fence, timeout_s=limit_s
        )


@dataclass(frozen=True)
class Shaped:
    """What shaping did or would do: the change, and the guest's predicted topology."""

    change: Change
    prediction: Prediction
    powered_off: bool


def plan_shape(arm: Arm, vm: VmFacts, host: HostFacts, own: Settings = MappingProxyType({})) -> Shaped:
    """What bringing this VM into the arm's shape would change.

    `own` are the VM's own values of what the study's arms set: they apply where the arm
    sets nothing.
    """
    begun = replace(vm, settings=settings_after(vm.settings, own))
    desired = merge_over_own(own, desired_settings(arm, begun, host))
    change = change_to(vm.settings, desired)
    off = change.needs_power_off and vm.power is not Power.OFF
    prediction = predict_for(vm, host, settings_after(vm.settings, desired))
    _refuse_another_count(arm, prediction)
    return Shaped(change, prediction, off)


def predict_for(vm: VmFacts, host: HostFacts, settings: Settings) -> Prediction:
    """The predicted topology of this VM, with these settings, at a power-on on this host."""
    return predict(host_shape(host), settings, vm.hardware_version)


def _refuse_another_count(arm: Arm, prediction: Prediction) -> None:
    """Refuse an arm whose node count contradicts its own settings: it could never be measured."""
    if arm.vnuma_nodes is None or prediction.confidence == "low":
        return
    if arm.vnuma_nodes not in prediction.acceptable:
        raise ArmImpossible(
            "T04",
            f"arm {arm.label} needs {arm.vnuma_nodes} vNUMA nodes, but its settings give "
            f"{prediction.vnuma_nodes}: {prediction.because}.",
            fix="Remove the settings that size nodes: vnuma_nodes then chooses them.",
        )


def shape(
    switch: PowerSwitch,
    arm: Arm,
    vm: VmFacts,
    host: HostFacts,
    own: Settings = MappingProxyType({}),
    *,
    always_off: bool,
    planned: Callable[[VmFacts, Shaped], None] = lambda _vm, _planned: None,
) -> Shaped:
    """Change the VM so that its next power-on has the arm's shape. It stays off if it was shut down.

    `vm` and `host` were just read. With `always_off` the guest is shut down even without changes, since every
    cell needs its own boot. `planned` gets the VM and the plan whenever the VM was read, and may raise.
    """
    plans: list[Shaped] = []

    def decide(now: VmFacts) -> Change:
        plans.append(plan_shape(arm, now, host, own))
        planned(now, plans[-1])
        return plans[-1].change

    change, after = write_settings(switch, "reconfigure", vm, decide, always_off=always_off)
    powered_off = vm.power is not Power.OFF and after.power is Power.OFF
    return Shaped(change, plans[-1].prediction, powered_off)


def shape_cell(context: VmContext, attempt: Claim) -> Document | None:
    """The step `shutdown` of a cell. Each change is stored before it is made. None without a hypervisor."""
    stored: list[dict[str, object]] = []
    with step(context, attempt, "shutdown"):
        done = on_hypervisor(
            context,
            attempt,
            "shutdown",
            lambda session, ref, _: _shape_once(context, attempt, session, ref, stored),
        )
    return shaped_document(done) | {"changed": True} if done else None


def _shape_once(
    context: VmContext, attempt: Claim, session: Session, ref: VmRef, stored: list[dict[str, object]]
) -> Shaped:
    """One attempt. `stored` are the edits planned so far: they may have been made."""
    arm = context.study.arm(attempt.arm)
    vm, host, plan = look_and_plan(context, arm, session, ref)
    if vm.power is Power.OFF:  # by itself, or by a process that died before recording it
        evidence.collect(journal_of(context), session, ref)

    def store(planned: Shaped) -> None:
        stored.extend(edit for edit in change_document(planned.change) if edit not in stored)
        with context.store.write() as connection:
            cells.mark_changing(connection, context.vm.id, context.token)
            attempts.save_plan(
                connection,
                attempt.id,
                context.token,
                intended=arm.model_dump(mode="json"),
                change=stored,
                predicted=prediction_document(planned.prediction),
            )

    def refuse_or_store(now: VmFacts, planned: Shaped) -> None:
        _refuse_foreign(context, now)
        if any(edit not in stored for edit in change_document(planned.change)):
            store(planned)

    store(plan)
    to_come = Boot(context.study, arm, context.vm, plan.prediction)
    inside = [setting for setting in SETTINGS if setting.is_set_for(to_come)] if vm.power is Power.ON else []
    if inside and is_proven(context, session, ref):  # otherwise its first boot tells
        for setting in inside:
            setting.switch_for(to_come, context.sql(), journal_of(context))
    return shape(
        PowerSwitch.of(context, session, ref, report_step(context, attempt, "shutdown")),
        arm,
        vm,
        host,
        own_settings(context, vm, host),
        always_off=True,
        planned=refuse_or_store,
    )


def look_and_plan(
    context: VmContext, arm: Arm, session: Session, ref: VmRef
) -> tuple[VmFacts, HostFacts, Shaped]:
    """Read the VM and its host, and plan what the arm changes. Changes nothing.

    Raises HostChanged, SomebodysChange, ArmImpossible.
    """
    vm, host = read.read_vm_on_host(session, ref)
    planned = plan_of_cell(context, arm, vm, host)
    _refuse_foreign(context, vm)
    return vm, host, planned


def plan_of_cell(context: VmContext, arm: Arm, vm: VmFacts, host: HostFacts) -> Shaped:
    """As `plan_shape`, with the VM's own values from before the run."""
    return plan_shape(arm, vm, host, own_settings(context, vm, host))


def _refuse_foreign(context: VmContext, vm: VmFacts) -> None:
    """Refuse a VM that somebody else moved or changed."""
    if vm.host_name != context.vm.esxi_host:
        raise HostChanged(
            f"{vm.name} is on {vm.host_name}, but the run started on {context.vm.esxi_host}.",
            fix="Move it back, and prevent DRS from moving it (rule A01).",
        )
    refuse_foreign_changes(context, vm)


def own_settings(context: VmContext, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """The VM's values, before the run, of what the study's arms set."""
    arms = [context.study.arm(label) for label in context.study.labels]
    return own_values(arms, baseline_settings(context.vm), vm, host)


def change_document(change: Iterable[Edit]) -> list[dict[str, object]]:
    """A change as JSON, for the store and for display."""
    return [asdict(edit) for edit in change]


def diff_text(value: object) -> object:
    """A list of CPUs on one line; Ansible would print one per line."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else value


def edits_diff(edits: Iterable[Edit]) -> dict[str, dict[str, object]]:
    """Edits as Ansible's diff mode shows them, in the order of their names."""
    ordered = sorted(edits, key=lambda edit: edit.setting)
    return {
        "before": {edit.setting: diff_text(edit.before) for edit in ordered},
        "after": {edit.setting: diff_text(edit.after) for edit in ordered},
    }


def shaped_document(done: Shaped) -> Document:
    """What shaping did or would do to the VM's settings and power."""
    return {
        "changed": bool(done.change),
        "changes": change_document(done.change),
        "prediction": prediction_document(done.prediction),
        "powered_off": done.powered_off,
    }


def prediction_document(prediction: Prediction) -> dict[str, object]:
    return {
        "vnuma_nodes": prediction.vnuma_nodes,
        "node_sizes": list(prediction.node_sizes),
        "alternatives": list(prediction.alternatives),
        "clients": list(prediction.clients),
        "sql_cpu_nodes": prediction.sql_cpu_nodes,
        "confidence": prediction.confidence,
        "because": prediction.because,
    }
