"""The restore of a VM in vCenter: planned, then done in one vSphere session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from vnuma.domain.study.study import Power as PowerRules
from vnuma.domain.vm.change import Edit, net
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power, Settings, is_evidence
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.locking import vm_lock
from vnuma.engine.access.target import VmTarget
from vnuma.engine.audit.journal import edits_of
from vnuma.engine.cell import evidence
from vnuma.engine.cell.dataset import dataset_exists
from vnuma.engine.cell.power_switch import POWER_OFF, PowerSwitch
from vnuma.engine.instance.settings import to_restore
from vnuma.engine.instance.sql_identity import Endpoint
from vnuma.engine.lease.baseline_document import baseline_power, baseline_settings
from vnuma.engine.lease.foreign_changes import conflicts, written
from vnuma.engine.lease.identity import ended_with_its_lab, find_own
from vnuma.engine.lease.run_mark import foreign_mark
from vnuma.engine.lease.vcenter_retry import RESTORING, VCenterRetry, report_retry, report_wait, retry_vcenter
from vnuma.engine.restore.restore import Difference, Held, Restoration, Restored, RestorePlan
from vnuma.engine.restore.restore_instance import InstanceRestore
from vnuma.engine.restore.settings_to_restore import (
    change_to_restore,
    held_by_another_run,
    settings_to_restore,
    unmarking,
)
from vnuma.errors import (
    AttemptFailed,
    CertificateRejected,
    EnvironmentProblem,
    LeaseLost,
    NotAtBaseline,
    VCenterUnreachable,
    VnumaError,
)
from vnuma.store import attempts, audit
from vnuma.store.audit import AuditLine
from vnuma.store.rows import Vm
from vnuma.store.types import utc_now
from vnuma.vsphere import apply, read, run_mark
from vnuma.vsphere.connect import Session, VmRef, connect
from vnuma.vsphere.uptime import seconds_since_power_on
from vnuma.vsphere.wait import settle

UNMARK_TRIES = 5

WRITE_TRIES = 5
"""How often settings are compared and restored again when somebody writes to the VM meanwhile."""

_ELSEWHERE = (LeaseLost, VCenterUnreachable, CertificateRejected)
"""Errors that end a restore at once: another process has the VM, or vCenter does not answer."""


@dataclass(frozen=True, kw_only=True)
class VmRestoration(Restoration):
    """The restore of a VM in vCenter."""

    target: VmTarget

    def plan(self) -> RestorePlan:
        """See `Restoration`. While the VM is off, SQL Server's values are shown as unknown."""
        with connect(vcenter(self.target)) as session:
            if ended_with_its_lab(session, self.run, self.vm):
                return RestorePlan()
            facts = read.read_vm(session, find_own(session, self.vm))
        unmark = [] if facts.lease is None or foreign_mark(facts.lease, self.run) else [unmarking(self.run)]
        if self.vm.baseline is None or held_by_another_run(self, facts):
            return RestorePlan(tuple(unmark))
        change = change_to_restore(self, facts, settings_to_restore(self, facts))
        server = sql_server(self.target) if facts.power is Power.ON else None
        inside = to_restore(self.store, self.run, self.vm)
        guest = [one.setting.planned(server, one.value) for one in inside]
        wanted = baseline_power(self.vm)
        power_edit = [] if wanted is facts.power else [Edit("power", str(facts.power), str(wanted))]
        cycle = change.needs_power_off or any(restart for _, restart in guest) or wanted is Power.OFF
        edits = [*change, *(edit for edit, _ in guest if edit), *power_edit, *unmark]
        return RestorePlan(tuple(edits), cycle and facts.power is not Power.OFF)

    def differences(self) -> list[Difference]:
        with connect(vcenter(self.target)) as session:
            facts = read.read_vm(session, find_own(session, self.vm))
        with self.store.read() as connection:
            ours = written(attempts.changes_of_vm(connection, self.vm.id))
        baseline, power = baseline_settings(self.vm), str(baseline_power(self.vm))
        foreign = {item.setting for item in conflicts(baseline, ours, facts.settings)}
        found = [
            Difference(edit.setting, edit.after, edit.before, by)
            for edit in change_to_restore(self, facts, baseline)
            for by in ["somebody else" if edit.setting in foreign else "us"]
        ]
        if str(facts.power) != power:
            found.append(Difference("power", power, str(facts.power), "somebody else or us"))
        return found

    def keeps_database(self) -> bool:
        return dataset_exists(self.store, self.vm)

    def _restore(self, held: Held) -> Restored:
        """Each attempt has its own session, since vCenter may be away for a while."""
        rules = self.study.power

        def once(_tries: int) -> Restored:
            # The longest that a step may hold the lock: shutdown, boot, and the tasks between them.
            wait_s = rules.shutdown_timeout_s + rules.tools_timeout_s + 2 * rules.task_timeout_s
            lock = vm_lock(self.home, self.vm.vm_key, self.vm.name, wait_s=wait_s, say=self.say)
            with lock, connect(vcenter(self.target)) as session:
                if ended_with_its_lab(session, self.run, self.vm):
                    return Restored(self.vm.name, 0, 0, None, lab_ended=True)
                return _Work(self, held, session).done()

        patience = VCenterRetry(rules.vcenter_retry_s)
        return retry_vcenter(once, patience, report_retry(self.store, self.vm, RESTORING, patience, self.say))


@dataclass(frozen=True)
class _Work:
    """The restore of one VM in one vSphere session."""

    restoration: VmRestoration
    held: Held
    session: Session

    @property
    def vm(self) -> Vm:
        return self.restoration.vm

    @property
    def rules(self) -> PowerRules:
        """The study's deadlines and its way to shut a guest down."""
        return self.restoration.study.power

    @cached_property
    def switch(self) -> PowerSwitch:
        held, given = self.held, self.restoration
        say = report_wait(given.store, self.vm, RESTORING, given.say)
        return PowerSwitch(self.session, self.ref, self.rules, held.fence, held.journal, say)

    @cached_property
    def ref(self) -> VmRef:
        """The run's own VM. Raises VmNotFound."""
        return find_own(self.session, self.vm)

    def done(self) -> Restored:
        """Wait for running tasks, restore everything, remove the run's mark."""
        settle(self.session, self.ref, self.rules.task_timeout_s)
        facts = self._read()
        if facts.power is Power.OFF:
            evidence.collect(self.held.journal, self.session, self.ref)
        if self.vm.baseline is None or held_by_another_run(self.restoration, facts):
            outcome = Restored(self.vm.name, 0, 0, facts.power)
        else:
            outcome = self._restore_or_on(facts)
        self._unmark()
        off = any(edit == POWER_OFF[0] for edit in self.held.journal.made)
        return replace(outcome, changes=net(self.held.journal.made), powered_off=off)

    def _read(self) -> VmFacts:
        return read.read_vm(self.session, self.ref)

    def _unmark(self) -> None:
        """Remove the run's own mark. Retries if somebody writes to the VM meanwhile."""
        for tries_left in reversed(range(UNMARK_TRIES)):
            mark = run_mark.read_mark(self.session, self.ref)
            if foreign_mark(mark.text, self.restoration.run):
                return
            run_mark.clear_note(self.session, self.ref)
            if mark.text is None:
                return
            try:
                with self.held.journal.change("mark", [unmarking(self.restoration.run)]):
                    run_mark.write_mark(self.session, self.ref, None, mark.change_version)
            except apply.ChangedMeanwhile:
                if not tries_left:
                    raise

    def _restore_or_on(self, facts: VmFacts) -> Restored:
        try:
            return self._restore_all(facts)
        except _ELSEWHERE:
            raise
        except VnumaError as error:
            raise self._not_left_off(error) from error

    def _restore_all(self, facts: VmFacts) -> Restored:
        settings_to_restore(self.restoration, facts)  # a conflict already: nothing is touched
        facts = self._after_shutdown(facts)
        given = self.restoration
        endpoint = Endpoint(given.store, given.run, self.vm, given.target)
        inside = InstanceRestore(
            self.switch,
            partial(sql_server, given.target),
            partial(endpoint.is_ours, self.session, self.ref),
            to_restore(given.store, given.run, self.vm),
        )
        inside.before_shape(facts)
        baseline, facts = self._shape_back(facts)
        checked = sum(not is_evidence(name) for name in baseline)
        if wrong := change_to_restore(given, facts, baseline):
            names = ", ".join(edit.setting for edit in wrong)
            raise NotAtBaseline(
                f"{self.vm.name} reads back different from its baseline: {names}.",
                fix=f"vnuma restore {self.vm.name}",
            )
        facts = inside.after_shape(facts)
        wanted = baseline_power(self.vm)
        if wanted is Power.ON and facts.power is not Power.ON:
            self._power_on(facts.host_moid)
        elif wanted is Power.OFF and facts.power is not Power.OFF:
            self.switch.off(back_on=False)
        state = self._read().power
        checked += inside.prove(state)
        return Restored(self.vm.name, checked, checked, state)

    def _after_shutdown(self, facts: VmFacts) -> VmFacts:
        """The VM after a shutdown that this run requested: one still pending would undo the restore.

        Raises ShutdownTimeout.
        """
        lines = self._power_lines()
        if facts.power is not Power.ON or not _asks_off(lines):
            return facts
        since_s = (utc_now() - lines[-1].at).total_seconds()
        if seconds_since_power_on(self.session, self.ref) < since_s:  # rebooted since the request
            return facts
        if self.switch.is_late():
            self.switch.await_off()
        return self._read()

    def _shape_back(self, facts: VmFacts) -> tuple[Settings, VmFacts]:
        """Reset the settings; returns them, and the VM as it reads afterwards.

        hostd, backups and Tools write to a VM just after a shutdown, so each attempt reads and compares anew.
        Raises RestoreConflict when such a write changed a setting.
        """
        baseline = settings_to_restore(self.restoration, facts)
        change = change_to_restore(self.restoration, facts, baseline)
        if change.needs_power_off and facts.power is not Power.OFF:
            self.restoration.say(f"shutting {facts.name} down")
            self.switch.off(back_on=baseline_power(self.vm) is Power.ON)
            facts = self._read()
        for tries_left in reversed(range(WRITE_TRIES)):
            baseline = settings_to_restore(self.restoration, facts)
            change = change_to_restore(self.restoration, facts, baseline)
            if not change:
                break
            self.restoration.say(f"restoring {len(change.edits)} settings of {facts.name}")
            try:
                with self.held.journal.change("restore", change):
                    facts = apply.reconfigure(
                        self.session, self.ref, change, seen=facts, fence=self.held.fence
                    )
                break
            except apply.ChangedMeanwhile:
                if not tries_left:
                    raise
                facts = self._read()
        return baseline, facts

    def _power_on(self, host_moid: str | None) -> None:
        self.restoration.say(f"powering {self.vm.name} on")
        self.switch.on_again(host_moid)

    def _not_left_off(self, error: VnumaError) -> VnumaError:
        """Power on a VM that this run left off although its baseline is on; returns `error` with the outcome.

        It boots in its present shape, on any host that takes it.
        """
        if (
            baseline_power(self.vm) is not Power.ON
            or self._read().power is Power.ON
            or not self._run_powered_it_off()
        ):
            return error
        try:
            self._power_on(None)
        except (AttemptFailed, EnvironmentProblem) as refused:
            became = f"It is off: {refused.what}"
        else:
            became = "It was powered on in its present shape."
        return type(error)(f"{error.what}\n{became}", fix=error.fix)

    def _run_powered_it_off(self) -> bool:
        """Whether this run last powered the VM off, or asked its guest to."""
        lines = self._power_lines()
        made = [edit.after for edit in (*edits_of(lines), *self.held.journal.made) if edit.setting == "power"]
        return made[-1:] == [str(Power.OFF)] or (not self.held.journal.made and _asks_off(lines))

    def _power_lines(self) -> list[AuditLine]:
        """The audit lines about the VM's power, including failures."""
        with self.restoration.store.read() as connection:
            lines = audit.lines(connection, self.restoration.run.id, vm_key=self.vm.vm_key)
        return [line for line in lines if any(edit["setting"] == "power" for edit in line.change)]


def _asks_off(lines: Sequence[AuditLine]) -> bool:
    return bool(lines) and lines[-1].change[0]["after"] == str(Power.OFF)
