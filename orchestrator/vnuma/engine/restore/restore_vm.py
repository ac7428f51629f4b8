"""Put a VM back as its baseline says. One function, whoever asks: the end of a run, recovery, a person.

Restoring raises the lease's token first, so that every other process of the run stops at its next
write; then it waits for the VM's lock and for vSphere tasks under way, and only then acts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from vnuma.domain.vm.change import change_back, differences, net
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power, Settings, is_evidence
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.target import Target
from vnuma.engine.cell import deferred_log
from vnuma.engine.cell.guest_shutdown import (
    POWER_OFF,
    POWER_ON,
    Fence,
    PowerRules,
    require_way_back,
    shut_down,
)
from vnuma.engine.instance.sql_identity import Endpoint
from vnuma.engine.lease.audit import Journal, edits_of
from vnuma.engine.lease.baseline import baseline_power, foreign_mark
from vnuma.engine.lease.identity import find_own
from vnuma.engine.lease.locking import vm_lock
from vnuma.engine.lease.vcenter_retry import VCenterRetry, report_retry, retry_vcenter
from vnuma.engine.restore.restore_instance import InstanceRestore, parts_of
from vnuma.engine.restore.restore_outcome import Restored, advance_token, give_up, possibly_changed, record
from vnuma.engine.restore.restore_plan import Choice, held_by_another_run, settings_to_restore, unmarking
from vnuma.errors import (
    AttemptFailed,
    CertificateRejected,
    EnvironmentProblem,
    HostChanged,
    LeaseLost,
    NotAtBaseline,
    RestoreConflict,
    StoreError,
    VCenterUnreachable,
    VnumaError,
)
from vnuma.store import audit, leases
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.states import RestoreOutcome
from vnuma.store.types import utc_now
from vnuma.vsphere import apply, lease_mark, lease_note, power, read
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.uptime import seconds_since_power_on
from vnuma.vsphere.wait import settle

UNMARK_TRIES = 5

WRITE_TRIES = 5
"""How often settings are compared and put back when the VM was written to in between."""

_ELSEWHERE = (LeaseLost, VCenterUnreachable, CertificateRejected)
"""Another process has the VM, or nothing can be done before vCenter answers again."""


def restore(
    store: Store,
    run: Run,
    vm: Vm,
    target: Target,
    *,
    home: Path,
    choice: Choice = "refuse",
    rules: PowerRules,
    say: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Put one VM back and give up its lease. Safe to repeat.

    Raises RestoreConflict when somebody else changed the VM and `choice` is `refuse`, NotAtBaseline
    when it could not be put back, also if the store cannot be read: the lease is kept in both. A
    store that cannot be written does not keep a VM from being put back: StoreError then says that it was.
    """
    try:
        token, broken = advance_token(store, run, vm)
    except StoreError as error:
        raise possibly_changed(vm.name, error) from error

    def fence() -> None:
        with store.read() as connection:
            leases.require_current(connection, vm.vm_key, token)

    # A line that cannot be written does not keep a VM from being put back; `give_up` tells of the store.
    journal = Journal(store, vm.vm_key, vm.name, run, lost=lambda _: None)

    def once(_tries: int) -> Restored:
        lock = vm_lock(home, vm.vm_key, vm.name, wait_s=rules.step_s, say=say)
        with lock, connect(vcenter(target)) as session:
            return _Work(store, run, vm, target, choice, rules, fence, journal, say, session).done()

    try:
        outcome = retry_vcenter(
            once, VCenterRetry(rules.retry_s), report_retry(store, vm, "putting back", say)
        )
    except RestoreConflict as error:
        record(store, vm, token, RestoreOutcome.CONFLICT, error.what)
        raise
    except LeaseLost:
        raise  # another process puts it back
    except (VnumaError, OSError) as error:
        away = error if isinstance(error, NotAtBaseline) else possibly_changed(vm.name, error)
        record(store, vm, token, RestoreOutcome.FAILED, away.what)
        raise away from error
    settled = RestoreOutcome.THEIRS if choice == "theirs" else RestoreOutcome.RESTORED
    give_up(store, vm, token, settled, outcome.words, broken)
    return outcome


@dataclass(frozen=True)
class _Work:
    """The putting back of one VM in one session."""

    store: Store
    run: Run
    vm: Vm
    target: Target
    choice: Choice
    rules: PowerRules
    fence: Fence
    journal: Journal
    say: Callable[[str], None]
    session: Session

    @cached_property
    def ref(self) -> VmRef:
        """The run's own VM. Raises VmNotFound."""
        return find_own(self.session, self.vm)

    def done(self) -> Restored:
        """Wait for tasks under way, put everything back, take the run's mark off the VM."""
        settle(self.session, self.ref, self.rules.task_s)
        facts = self._read()
        if facts.power is Power.OFF:
            deferred_log.collect(self.journal, self.session, self.ref)
        if self.vm.baseline is None or held_by_another_run(self.store, self.run, self.vm, facts):
            outcome = Restored(self.vm.name, 0, 0, facts.power)
        else:
            outcome = self._put_back_or_on(facts)
        self._unmark()
        off = any(edit == POWER_OFF[0] for edit in self.journal.made)
        return replace(outcome, changes=net(self.journal.made), powered_off=off)

    def _read(self) -> VmFacts:
        return read.read_vm(self.session, self.ref)

    def _unmark(self) -> None:
        """Take the run's own mark off. If somebody writes to the VM meanwhile: again."""
        for tries_left in reversed(range(UNMARK_TRIES)):
            mark = lease_mark.read_mark(self.session, self.ref)
            if foreign_mark(mark.text, self.run):
                return
            lease_note.clear_note(self.session, self.ref)
            if mark.text is None:
                return
            try:
                with self.journal.change("mark", [unmarking(self.run)]):
                    lease_mark.write_mark(self.session, self.ref, None, mark.change_version)
            except apply.ChangedMeanwhile:
                if not tries_left:
                    raise

    def _put_back_or_on(self, facts: VmFacts) -> Restored:
        try:
            return self._put_back(facts)
        except _ELSEWHERE:
            raise
        except VnumaError as error:
            raise self._not_left_off(error) from error

    def _put_back(self, facts: VmFacts) -> Restored:
        settings_to_restore(self.store, self.vm, facts, self.choice)  # a conflict already: nothing is touched
        facts = self._after_shutdown(facts)
        endpoint = Endpoint(self.store, self.run, self.vm, self.target)
        inside = InstanceRestore(
            self.session,
            self.ref,
            partial(sql_server, self.target),
            partial(endpoint.is_ours, self.session, self.ref),
            parts_of(self.store, self.run, self.vm),
            self.rules,
            self.fence,
            self.journal,
            self.say,
        )
        inside.before_shape(facts)
        baseline, facts = self._shape_back(facts)
        wrong = differences({k: v for k, v in baseline.items() if not is_evidence(k)}, facts.settings)
        checked = sum(not is_evidence(name) for name in baseline)
        if change_back(facts.settings, baseline):
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
            shut_down(self.session, self.ref, self.rules, self.fence, self.journal)
        state = self._read().power
        checked += inside.prove(state)
        return Restored(self.vm.name, checked, checked, state)

    def _after_shutdown(self, facts: VmFacts) -> VmFacts:
        """The VM once a shutdown that this run asked for has ended: later it would undo the restore.

        Raises ShutdownTimeout.
        """
        lines = self._power_lines()
        if facts.power is not Power.ON or self.rules.ask == "reboot" or not _asks_off(lines):
            return facts
        since_s = (utc_now() - lines[-1].at).total_seconds()
        if seconds_since_power_on(self.session, self.ref) < since_s:  # another boot than the one asked
            return facts
        if power.is_shutting_down(self.session, self.ref):
            self.say(f"waiting for {facts.name}, whose guest was asked to shut down {since_s:.0f} s ago")
            power.await_shutdown(self.session, self.ref, self.rules.shutdown_s)
        return self._read()

    def _shape_back(self, facts: VmFacts) -> tuple[Settings, VmFacts]:
        """Put the settings back; what they went back to, and the VM as it reads then.

        hostd, backups and Tools write to a VM just after a shutdown: what is there is read and compared
        anew before each try. Raises RestoreConflict when somebody else's write then changed a setting.
        """
        baseline = settings_to_restore(self.store, self.vm, facts, self.choice)
        if change_back(facts.settings, baseline).needs_power_off and facts.power is not Power.OFF:
            if baseline_power(self.vm) is Power.ON:
                require_way_back(self.session, self.ref)
            self.say(f"shutting {facts.name} down")
            shut_down(self.session, self.ref, self.rules, self.fence, self.journal)
            facts = self._read()
        for tries_left in reversed(range(WRITE_TRIES)):
            baseline = settings_to_restore(self.store, self.vm, facts, self.choice)
            change = change_back(facts.settings, baseline)
            if not change:
                break
            self.say(f"putting back {len(change.edits)} settings of {facts.name}")
            try:
                with self.journal.change("put back", change):
                    facts = apply.reconfigure(self.session, self.ref, change, seen=facts, fence=self.fence)
                break
            except apply.ChangedMeanwhile:
                if not tries_left:
                    raise
                facts = self._read()
        return baseline, facts

    def _power_on(self, host_moid: str | None) -> None:
        """Power on at that host. One that DRS or HA places elsewhere is on all the same: that is said."""
        self.say(f"powering {self.vm.name} on")
        with self.journal.change("power", POWER_ON):
            try:
                power.power_on(
                    self.session,
                    self.ref,
                    host_moid=host_moid,
                    fence=self.fence,
                    timeout_s=self.rules.task_s,
                )
            except HostChanged as moved:
                self.say(f"{moved.what} {moved.fix or ''}")

    def _not_left_off(self, error: VnumaError) -> VnumaError:
        """Power on a VM that this run left off though its baseline is on; the error, with what became of it.

        It boots in the shape that it has, on any host that takes it.
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
            became = "It was powered on in the shape that it has."
        return type(error)(f"{error.what}\n{became}", fix=error.fix)

    def _run_powered_it_off(self) -> bool:
        """Whether this run last powered the VM off, or asked its guest to."""
        lines = self._power_lines()
        made = [edit.after for edit in (*edits_of(lines), *self.journal.made) if edit.setting == "power"]
        return made[-1:] == [str(Power.OFF)] or (not self.journal.made and _asks_off(lines))

    def _power_lines(self) -> list[AuditLine]:
        """What this run wrote of the VM's power, also where that failed."""
        with self.store.read() as connection:
            lines = audit.lines(connection, self.run.id, vm_key=self.vm.vm_key)
        return [line for line in lines if any(edit["setting"] == "power" for edit in line.change)]


def _asks_off(lines: Sequence[AuditLine]) -> bool:
    return bool(lines) and lines[-1].change[0]["after"] == str(Power.OFF)
