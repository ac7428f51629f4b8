"""The restore of a VM in vCenter, from any source: the store's baseline or the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from vnuma.domain.study.study import Power as PowerRules
from vnuma.domain.vm.change import Change, Edit, change_back, net
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power, Settings, Value, is_evidence
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.locking import patience_s, vm_lock
from vnuma.engine.access.target import Target
from vnuma.engine.audit.journal import edits_of
from vnuma.engine.cell import evidence
from vnuma.engine.cell.power_switch import POWER_OFF, PowerSwitch
from vnuma.engine.cell.write_settings import not_left_off, write_settings
from vnuma.engine.instance.instance_setting import wait_for_server
from vnuma.engine.instance.settings import Baselined, to_restore
from vnuma.engine.instance.sql_identity import Endpoint, require_silence
from vnuma.engine.lease.baseline_document import baseline_power, baseline_settings
from vnuma.engine.lease.foreign_changes import ForeignChange, conflicts, written
from vnuma.engine.lease.identity import ended_with_its_lab, find_by_key
from vnuma.engine.lease.run_mark import foreign_mark
from vnuma.engine.lease.vcenter_retry import (
    RESTORING,
    Tell,
    VCenterRetry,
    report_retry,
    report_wait,
    retry_vcenter,
)
from vnuma.engine.restore.part import (
    Choice,
    Difference,
    HeldLease,
    PartRestore,
    Restored,
    RestorePlan,
    kept_settings,
)
from vnuma.errors import AttemptFailed, EnvironmentProblem, NotAtBaseline, RestoreConflict
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.store import attempts, audit
from vnuma.store.audit import AuditLine
from vnuma.store.types import utc_now
from vnuma.vsphere import apply, read, run_mark
from vnuma.vsphere.connect import Session, VmRef, connect
from vnuma.vsphere.uptime import powered_on_at, seconds_since, seconds_since_power_on
from vnuma.vsphere.wait import settle

UNMARK_TRIES = 5


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is known of a VM from before a run, and what the run may have written since."""

    vm_key: str
    name: str
    where: str
    """The VM as messages name it when it is not found."""
    run: str
    rules: PowerRules
    """The study's deadlines and its way to shut a guest down."""
    power: Power | None
    """The power state before; None if the run did not change it."""
    is_known: bool = True
    """Whether there is anything to restore."""
    before: Callable[[Settings], Settings]
    """The settings before; the present ones complete a source that has only some."""
    written: Mapping[str, set[Value]]
    """Every value that the run may have written, by setting."""
    untouched: bool
    """Whether the run has changed nothing, or was restored."""
    foreign_mark: Callable[[str | None], dict[str, str] | None]
    """The mark on the VM if it is another run's."""
    power_lines: Callable[[], Sequence[AuditLine]]
    """The changes of the VM's power in the audit log, including failures."""
    inside: tuple[Baselined, ...] = ()
    """SQL Server's settings to restore."""
    proves: Callable[[Session, VmRef], bool] = lambda _session, _ref: False
    """Whether the SQL Server that answers now runs inside the VM."""
    choose: str
    """How to choose where somebody else changed a setting."""

    def settings(self, choice: Choice, facts: VmFacts) -> Settings:
        """The settings to restore: those before, or with `theirs` those that somebody else changed.

        Raises RestoreConflict when somebody else changed some and `choice` is `refuse`.
        """
        foreign = self.foreign(facts)
        kept = kept_settings(self.name, foreign, choice, self.choose)
        # As written: 0 where vSphere chooses a number, which the VM's settings show too.
        theirs = {item.setting: item.now for item in foreign if item.setting in kept}
        return {**self.before(facts.settings), **theirs}

    def foreign(self, facts: VmFacts) -> list[ForeignChange]:
        """Settings that somebody else changed."""
        return conflicts(self.before(facts.settings), self.written, facts.settings)

    def change_to(self, settings: Settings, facts: VmFacts) -> Change:
        """The change that brings the VM to these settings.

        `settings` has no keys that typed fields own. Such a key is reset to its value before if it still has
        the value that this run wrote.
        """
        before = self.before(facts.settings)
        stored = tuple(
            Edit(key, facts.settings[key], before.get(key))
            for key, values in sorted(self.written.items())
            if is_evidence(key) and facts.settings.get(key) in values - {None, before.get(key)}
        )
        return Change((*change_back(facts.settings, settings), *stored))

    def change(self, choice: Choice, facts: VmFacts) -> Change:
        """The change that restores the VM. Raises RestoreConflict as `settings` does."""
        return self.change_to(self.settings(choice, facts), facts)

    def held_by_another_run(self, facts: VmFacts) -> bool:
        """Whether another run has marked the VM and this one has not changed it: nothing needs restoring.

        Raises RestoreConflict when this run has changed it too.
        """
        mark = self.foreign_mark(facts.lease)
        if mark is None or self.untouched:
            return mark is not None
        raise RestoreConflict(
            f"{self.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}. "
            "Nothing was changed now.",
            fix=f"Let that run restore it, then: vnuma restore {self.name}",
        )

    @property
    def unmarking(self) -> Edit:
        """The removal of the run's mark, as a change."""
        return Edit(run_mark.LEASE_KEY, self.run, None)

    def plan(self, choice: Choice, facts: VmFacts, target: Target) -> RestorePlan:
        """What a restore would change now. While the VM is off, SQL Server's values are shown as unknown."""
        unmark = [] if facts.lease is None or self.foreign_mark(facts.lease) else [self.unmarking]
        if not self.is_known or self.held_by_another_run(facts):
            return RestorePlan(tuple(unmark))
        change = self.change(choice, facts)
        server = sql_server(target) if self.inside and facts.power is Power.ON else None
        guest = [one.setting.planned(server, one.value) for one in self.inside]
        wanted = self.power or facts.power
        power_edit = [] if wanted is facts.power else [Edit("power", str(facts.power), str(wanted))]
        cycle = change.needs_power_off or any(restart for _, restart in guest) or wanted is Power.OFF
        edits = [*change, *(edit for edit, _ in guest if edit), *power_edit, *unmark]
        return RestorePlan(tuple(edits), cycle and facts.power is not Power.OFF)


@dataclass(frozen=True)
class VmRestoration(PartRestore):
    """The restore of a VM in vCenter from the store's baseline."""

    def plan(self) -> RestorePlan:
        """See `PartRestore`."""
        with connect(vcenter(self.context.target)) as session:
            if ended_with_its_lab(session, self.context.run, self.context.vm):
                return RestorePlan()
            source = self._source
            facts = read.read_vm(session, find_by_key(session, source.vm_key, source.where))
        return source.plan(self.choice, facts, self.context.target)

    def differences(self) -> list[Difference]:
        """See `PartRestore`."""
        source = self._source
        with connect(vcenter(self.context.target)) as session:
            facts = read.read_vm(session, find_by_key(session, source.vm_key, source.where))
        foreign = {item.setting for item in source.foreign(facts)}
        found = [
            Difference(edit.setting, edit.after, edit.before, by)
            for edit in source.change_to(source.before(facts.settings), facts)
            for by in ["somebody else" if edit.setting in foreign else "us"]
        ]
        if facts.power is not source.power:
            found.append(Difference("power", str(source.power), str(facts.power), "somebody else or us"))
        return found

    def restore(self, held: HeldLease) -> Restored:
        """See `PartRestore`."""
        context = self.context
        say = report_wait(context.store, context.vm, RESTORING, self.say)

        def at(session: Session) -> Restored:
            if ended_with_its_lab(session, context.run, context.vm):
                return Restored(context.vm.name, 0, 0, None, lab_ended=True)
            return VmRestore(self._source, context.target, self.choice, held, session, say).done()

        patience = VCenterRetry(context.study.power.vcenter_retry_s)
        tell = report_retry(context.store, context.vm, RESTORING, patience, self.say)
        return at_vcenter(self._source, context.target, context.home, self.say, at, patience, tell)

    @property
    def _source(self) -> Source:
        store, run, vm = self.context.store, self.context.run, self.context.vm
        with store.read() as connection:
            ours = written(attempts.changes_of_vm(connection, vm.id))
        known = vm.baseline is not None
        baseline = baseline_settings(vm) if known else {}

        def power_lines() -> list[AuditLine]:
            with store.read() as connection:
                return about_power(audit.changes(audit.lines(connection, run.id, vm_key=vm.vm_key)))

        return Source(
            vm_key=vm.vm_key,
            name=vm.name,
            where=f"{vm.name} ({vm.path})",
            run=run.name,
            rules=self.context.study.power,
            power=baseline_power(vm) if known else None,
            before=lambda _now: baseline,
            written=ours,
            is_known=known,
            untouched=vm.at_baseline or not ours,
            foreign_mark=lambda text: foreign_mark(text, run),
            power_lines=power_lines,
            inside=to_restore(store, run, vm) if known else (),
            proves=Endpoint(store, run, vm, self.context.target).is_ours,
            choose=f"vnuma restore {vm.name} --theirs | --baseline",
        )


def at_vcenter(
    source: Source,
    target: Target,
    home: Path,
    say: Callable[[str], None],
    work: Callable[[Session], Restored],
    patience: VCenterRetry,
    tell: Tell,
) -> Restored:
    """Do this with the VM locked, in a session for each try, since vCenter may be away for a while."""
    wait_s = patience_s(source.rules)

    def once(_tries: int) -> Restored:
        lock = vm_lock(home, source.vm_key, source.name, wait_s=wait_s, say=say)
        with lock, connect(vcenter(target)) as session:
            return work(session)

    return retry_vcenter(once, patience, tell)


@dataclass(frozen=True)
class VmRestore:
    """The restore of one VM in one vSphere session."""

    source: Source
    target: Target
    choice: Choice
    held: HeldLease
    session: Session
    say: Callable[[str], None]

    @cached_property
    def switch(self) -> PowerSwitch:
        """That of the VM."""
        return PowerSwitch(
            self.session, self.ref, self.source.rules, self.held.fence, self.held.journal, self.say
        )

    @cached_property
    def ref(self) -> VmRef:
        """The run's own VM. Raises VmNotFound."""
        return find_by_key(self.session, self.source.vm_key, self.source.where)

    def done(self) -> Restored:
        """Wait for running tasks, restore everything, remove the run's mark."""
        settle(self.session, self.ref, self.source.rules.task_timeout_s)
        facts = self.read()
        if facts.power is Power.OFF:
            evidence.collect(self.held.journal, self.session, self.ref)
        if not self.source.is_known or self.source.held_by_another_run(facts):
            outcome = Restored(self.source.name, 0, 0, facts.power)
        else:
            with not_left_off(self.switch, self._run_left_it_off):
                outcome = self._restore_all(facts)
        self._unmark()
        off = any(edit == POWER_OFF[0] for edit in self.held.journal.made)
        return replace(outcome, changes=net(self.held.journal.made), powered_off=off)

    def read(self) -> VmFacts:
        """The VM as it is now."""
        return read.read_vm(self.session, self.ref)

    def _unmark(self) -> None:
        """Remove the run's own mark. Retries if somebody writes to the VM meanwhile."""
        for tries_left in reversed(range(UNMARK_TRIES)):
            mark = run_mark.read_mark(self.session, self.ref)
            if self.source.foreign_mark(mark.text):
                return
            run_mark.clear_note(self.session, self.ref)
            if mark.text is None:
                return
            try:
                with self.held.journal.change("mark", [self.source.unmarking]):
                    run_mark.write_mark(self.session, self.ref, None, mark.change_version)
            except apply.ChangedMeanwhile:
                if not tries_left:
                    raise

    def _restore_all(self, facts: VmFacts) -> Restored:
        source, choice = self.source, self.choice
        wanted = self._wanted_power(facts)
        source.settings(choice, facts)  # a conflict already: nothing is touched
        facts = self._after_shutdown(facts)
        inside = _Inside(self)
        inside.before_shape(facts)
        back_on = wanted is Power.ON
        change = partial(source.change, choice)
        if planned := change(facts):
            self.say(f"restoring {len(planned.edits)} settings of {facts.name}")
        _, facts = write_settings(self.switch, "restore", facts, change, back_on=back_on)
        settings = source.settings(choice, facts)
        if wrong := source.change_to(settings, facts):
            names = ", ".join(edit.setting for edit in wrong)
            raise NotAtBaseline(
                f"{source.name} reads back different from its baseline: {names}.",
                fix=f"vnuma restore {source.name}",
            )
        checked = sum(not is_evidence(name) for name in settings)
        facts = inside.after_shape(facts)
        if wanted is Power.ON and facts.power is not Power.ON:
            self.say(f"powering {source.name} on")
            self.switch.on_again(facts.host_moid)
        elif wanted is Power.OFF and facts.power is not Power.OFF:
            self.switch.off(back_on=False)
        state = self.read().power
        checked += inside.prove(state)
        return Restored(source.name, checked, checked, state)

    def _wanted_power(self, facts: VmFacts) -> Power:
        """The power state before the run; where it did not change that, the one before this restore."""
        ours = [Power(str(edit.before)) for edit in self.held.journal.made if edit.setting == "power"]
        return self.source.power or (ours[0] if ours else facts.power)

    def _after_shutdown(self, facts: VmFacts) -> VmFacts:
        """The VM after a shutdown that this run requested: one still pending would undo the restore.

        Raises ShutdownTimeout.
        """
        lines = self.source.power_lines()
        if facts.power is not Power.ON or not _asks_off(lines):
            return facts
        since_s = (utc_now() - lines[-1].at).total_seconds()
        if seconds_since_power_on(self.session, self.ref) < since_s:  # rebooted since the request
            return facts
        if self.switch.is_late():
            self.switch.await_off()
        return self.read()

    def _run_left_it_off(self) -> bool:
        """Whether it was on before the run, which last powered it off, or asked its guest to."""
        lines = self.source.power_lines()
        made = [edit.after for edit in (*edits_of(lines), *self.held.journal.made) if edit.setting == "power"]
        last_off = made[-1:] == [str(Power.OFF)] or (not self.held.journal.made and _asks_off(lines))
        return last_off and self._wanted_power(self.read()) is Power.ON


@dataclass
class _Inside:
    """SQL Server's own settings around the VM's: soft-NUMA, process affinity, pool, TCP ports.

    Does nothing for a run that changed none. `restart`: whether one that was set still needs a restart.
    """

    work: VmRestore
    restart: dict[Baselined, bool] = field(default_factory=dict)

    @property
    def settings(self) -> tuple[Baselined, ...]:
        """Those that the run changed."""
        return self.work.source.inside

    @property
    def server(self) -> SqlServer:
        """How to reach it."""
        return sql_server(self.work.target)

    def _is_ours(self, facts: VmFacts) -> bool:
        return facts.power is Power.ON and self.work.source.proves(self.work.session, self.work.ref)

    def before_shape(self, facts: VmFacts) -> None:
        """Set them during the present boot, so that the power-cycle for the shape makes them effective."""
        if not self.settings or not self._is_ours(facts):
            return
        for one in self.settings:
            with suppress(AttemptFailed, EnvironmentProblem):  # `after_shape` raises it later
                self._set(one)

    def after_shape(self, facts: VmFacts) -> VmFacts:
        """Set what was not possible before; the VM stays off if a restart is needed.

        Raises SqlTimeout, SqlFailed, PowerFailed, ShutdownTimeout, WrongServer.
        """
        if not self.settings:
            return facts
        work, late = self.work, [one for one in self.settings if one not in self.restart]
        if late and not self._is_ours(facts):
            self._boot(facts)
        for one in late:
            wait_for_server(self.server, work.source.rules.sql_timeout_s)
            self._set(one)
        facts = work.read()
        if any(self.restart.values()) and facts.power is Power.ON:
            work.switch.off(back_on=True)
            facts = work.read()
        return facts

    def _set(self, one: Baselined) -> None:
        self.restart[one] = one.setting.switch(self.server, one.value, self.work.held.journal).needs_restart

    def _boot(self, facts: VmFacts) -> None:
        """Power on and prove whose SQL Server answers: none before the power-on, and a later start."""
        session, switch = self.work.session, self.work.switch
        if facts.power is not Power.OFF:
            switch.off(back_on=True)
        require_silence(self.server, facts.name)
        switch.say(f"powering {facts.name} on to restore SQL Server")
        at = switch.on_again(facts.host_moid) or powered_on_at(session, self.work.ref)
        wait_for_server(self.server, self.work.source.rules.sql_timeout_s, seconds_since(session, at))

    def prove(self, state: Power) -> int:
        """How many were proven restored. Raises SqlTimeout or SqlFailed."""
        if state is not Power.ON:
            return 0
        for one in self.settings:
            one.setting.verify(self.server, one.value, self.work.source.rules.sql_timeout_s)
        return len(self.settings)


def about_power(lines: Sequence[AuditLine]) -> list[AuditLine]:
    """Those about the VM's power, including failures."""
    return [line for line in lines if any(edit["setting"] == "power" for edit in line.change)]


def _asks_off(lines: Sequence[AuditLine]) -> bool:
    return bool(lines) and lines[-1].change[0]["after"] == str(Power.OFF)
