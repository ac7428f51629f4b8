"""The restore of a VM in vCenter, from a source: the store's baseline or the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from vnuma.domain.study.study import PowerRules
from vnuma.domain.vm.change import Change, Edit, change_back, net, settings_after
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power, Settings, Value, is_evidence
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.locking import patience_s, vm_lock
from vnuma.engine.access.target import Target
from vnuma.engine.audit.log import Journal, edits_of
from vnuma.engine.cell import evidence
from vnuma.engine.cell.shape import POWER_OFF, WRITE_TRIES, Fence, PowerSwitch, not_left_off, write_settings
from vnuma.engine.instance.sql_identity import require_silence
from vnuma.engine.instance.sql_settings import Baselined, InstanceSetting, wait_for_server
from vnuma.engine.lease.baseline import ForeignChange, conflict_words, conflicts
from vnuma.engine.lease.vcenter_retry import Tell, VCenterRetry, retry_vcenter
from vnuma.engine.lease.whose_vm import ended_with_its_lab, find_by_key, foreign_mark
from vnuma.errors import AttemptFailed, EnvironmentProblem, NotAtBaseline, RestoreConflict, VmHeld
from vnuma.store.audit import AuditLine
from vnuma.store.tables import utc_now
from vnuma.vsphere import apply, read, run_mark
from vnuma.vsphere.connect import Session, VmRef, connect
from vnuma.vsphere.uptime import powered_on_at, seconds_since, seconds_since_power_on
from vnuma.vsphere.wait import settle

Choice = Literal["refuse", "theirs", "baseline"]
"""For settings that somebody else changed: refuse and touch nothing, keep theirs, or restore them too."""


@dataclass(frozen=True)
class Restored:
    """The result of a restore: `equal` of `settings` read back equal, and what was changed. Of a plan, only
    what a restore would change.

    `power` is the power state, None where nothing powers it. `begun`: whether the run had started on it.
    `lab_ended`: it was a VM of a lab that exists no more.
    """

    vm: str
    settings: int = 0
    equal: int = 0
    power: Power | None = None
    changes: tuple[Edit, ...] = ()
    powered_off: bool = False
    begun: bool = True
    lab_ended: bool = False

    @property
    def words(self) -> str:
        """For people: only what was proven."""
        if not self.begun:
            return f"{self.vm}: no change was started there"
        if self.lab_ended:
            return f"{self.vm}: it ended with its lab; nothing is left to restore"
        state = {Power.ON: "powered on", None: "files removed"}.get(self.power, "powered off")
        if not self.settings:
            return f"{self.vm}: the study changes no setting here, {state}"
        return f"{self.vm}: {self.equal} of {self.settings} settings read back equal, {state}"


@dataclass(frozen=True)
class Difference:
    """A setting that differs from the baseline, and who changed it: "us" or "somebody else"."""

    setting: str
    baseline: Value
    now: Value
    by: str


def kept_settings(name: str, foreign: list[ForeignChange], choice: Choice, fix: str) -> set[str]:
    """Which settings stay as somebody else changed them: with `theirs` all of them, else none.

    Raises RestoreConflict when there are any and `choice` is `refuse`.
    """
    if foreign and choice == "refuse":
        raise RestoreConflict(conflict_words(name, foreign), fix=fix)
    return {item.setting for item in foreign} if choice == "theirs" else set()


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is known of a VM from before a run, and what the run may have written since."""

    vm_key: str
    name: str
    run: str
    created: str | None
    """When the run was created, as its mark says; None where its name has to do."""
    rules: PowerRules
    """The study's deadlines and its way to shut a guest down."""
    choice: Choice
    choose: str
    """How to choose where somebody else changed a setting."""
    power: Power | None
    """The power state before; None if the run did not change it."""
    known: Settings
    """The settings before."""
    written: Mapping[str, set[Value]]
    """Every value that the run may have written, by setting."""
    power_lines: Callable[[], Sequence[AuditLine]]
    """The changes of the VM's power in the audit log, including failures."""
    is_whole: bool = True
    """Whether every setting before is known; else the present ones complete them."""
    is_known: bool = True
    """Whether there is anything to restore."""
    untouched: bool = False
    """Whether the run has changed nothing, or was restored."""
    held: type[RestoreConflict | VmHeld] = RestoreConflict
    """The error for a VM that another run has marked."""
    execution_s: float = 0
    """The deadline of one execution of the study's workload, where known."""
    lab: str | None = None
    """The lab of the run, None for a real vCenter."""
    inside: Baselined = field(default_factory=dict)
    """SQL Server's settings to restore."""
    proves: Callable[[Session, VmRef], bool] = lambda _session, _ref: False
    """Whether the SQL Server that answers now runs inside the VM."""

    def foreign_mark(self, text: str | None) -> dict[str, str] | None:
        """The mark if it is another run's."""
        return foreign_mark(text, self.run, self.created)

    def before(self, now: Settings) -> Settings:
        """The settings before."""
        return self.known if self.is_whole else settings_after(now, self.known)

    def foreign(self, facts: VmFacts) -> list[ForeignChange]:
        """Settings that somebody else changed."""
        return conflicts(self.before(facts.settings), self.written, facts.settings)

    def settings(self, facts: VmFacts) -> Settings:
        """The settings to restore: those before, or with `theirs` those that somebody else changed.

        Raises RestoreConflict when somebody else changed some and `choice` is `refuse`.
        """
        foreign = self.foreign(facts)
        kept = kept_settings(self.name, foreign, self.choice, self.choose)
        # As written: 0 where vSphere chooses a number, which the VM's settings show too.
        theirs = {item.setting: item.now for item in foreign if item.setting in kept}
        return {**self.before(facts.settings), **theirs}

    def change(self, facts: VmFacts, settings: Settings | None = None) -> Change:
        """The change that restores the VM, or brings it to these `settings`. Raises as `settings` does.

        Keys that typed fields own are not among them. Such a key is reset to its value before if it still has
        the value that this run wrote.
        """
        wanted = self.settings(facts) if settings is None else settings
        before, now = self.before(facts.settings), facts.settings
        stored = tuple(
            Edit(key, now[key], before.get(key))
            for key, values in sorted(self.written.items())
            if is_evidence(key) and now.get(key) in values - {None, before.get(key)}
        )
        return Change((*change_back(now, wanted), *stored))

    def held_by_another_run(self, facts: VmFacts) -> bool:
        """Whether another run has marked the VM and this one has not changed it: nothing needs restoring.

        Raises `held` when this run has changed it too.
        """
        mark = self.foreign_mark(facts.lease)
        if mark is None or self.untouched:
            return mark is not None
        raise self.held(
            f"{self.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}. "
            "Nothing was changed now.",
            fix="Let that run restore it, then repeat the restore.",
        )

    def plan(self, facts: VmFacts, target: Target) -> Restored:
        """What a restore would change now. While the VM is off, SQL Server's values are shown as unknown."""
        ours = facts.lease is not None and not self.foreign_mark(facts.lease)
        unmark = [Edit(run_mark.LEASE_KEY, self.run, None)] * ours
        if not self.is_known or self.held_by_another_run(facts):
            return Restored(self.name, changes=tuple(unmark))
        change = self.change(facts)
        server = sql_server(target) if self.inside and facts.power is Power.ON else None
        guest = [setting.planned(server, value) for setting, value in self.inside.items()]
        wanted = self.power or facts.power
        power = [] if wanted is facts.power else [Edit("power", str(facts.power), str(wanted))]
        cycle = change.needs_power_off or any(restart for _, restart in guest) or wanted is Power.OFF
        edits = (*change, *(edit for edit, _ in guest if edit), *power, *unmark)
        return Restored(self.name, changes=edits, powered_off=cycle and facts.power is not Power.OFF)

    def differences(self, facts: VmFacts) -> list[Difference]:
        """How the VM differs from before."""
        foreign = {item.setting for item in self.foreign(facts)}
        found = [
            Difference(edit.setting, edit.after, edit.before, by)
            for edit in self.change(facts, self.before(facts.settings))
            for by in ["somebody else" if edit.setting in foreign else "us"]
        ]
        if facts.power is not self.power:
            found.append(Difference("power", str(self.power), str(facts.power), "somebody else or us"))
        return found


def facts_now(source: Source, target: Target) -> VmFacts | None:
    """The VM as it is now; None if it ended with its lab."""
    with connect(vcenter(target)) as session:
        if ended_with_its_lab(session, source.lab, source.vm_key):
            return None
        return read.read_vm(session, find_by_key(session, source.vm_key, source.name))


def restore_vm(
    source: Callable[[], Source],
    target: Target,
    journal: Journal,
    *,
    home: Path,
    fence: Fence,
    tell: Tell,
    say: Callable[[str], None],
) -> Restored:
    """With the VM locked, compare it with the source, write the differences, read them back.

    `source` is asked with the VM locked: what another process changed counts. A session for each try, since
    vCenter may be away for a while; `tell` hears of each. Raises RestoreConflict before the first change when
    somebody else changed something and the choice is `refuse`; any VnumaError or OSError when it fails.
    """
    known = source()

    def once(_tries: int) -> Restored:
        wait_s = patience_s(known.rules, known.execution_s)
        lock = vm_lock(home, known.vm_key, known.name, wait_s=wait_s, say=say)
        with lock, connect(vcenter(target)) as session:
            now = source()
            if ended_with_its_lab(session, now.lab, now.vm_key):
                return Restored(now.name, lab_ended=True)
            ref = find_by_key(session, now.vm_key, now.name)
            switch = PowerSwitch(session, ref, now.rules, fence, journal, say)
            return _VmWork(now, target, switch).done()

    return retry_vcenter(once, VCenterRetry(known.rules.vcenter_retry_s), tell)


def wanted_power(before: Power | None, made: Sequence[Edit], now: Power) -> Power:
    """The power state before the run; where it did not change that, the one before this restore's edits."""
    ours = [Power(str(edit.before)) for edit in made if edit.setting == "power"]
    return before or (ours[0] if ours else now)


def is_asked_off(lines: Sequence[AuditLine]) -> bool:
    """Whether the last of a run's power changes asks the guest to shut down, however that ended."""
    return bool(lines) and lines[-1].change[0]["after"] == str(Power.OFF)


def is_pending(request: AuditLine, now: datetime, up_s: float) -> bool:
    """Whether a VM that is on has not been rebooted since its guest was asked to shut down."""
    return up_s >= (now - request.at).total_seconds()


def was_powered_off(lines: Sequence[AuditLine], made: Sequence[Edit]) -> bool:
    """Whether the VM was last powered off by us, or its guest was asked to by the run.

    `lines` are the run's power changes, `made` what this restore has changed.
    """
    power = [edit.after for edit in (*edits_of(lines), *made) if edit.setting == "power"]
    return power[-1:] == [str(Power.OFF)] or (not made and is_asked_off(lines))


@dataclass
class _VmWork:
    """The restore of one VM in one vSphere session.

    SQL Server's own settings (soft-NUMA, process affinity, pool, TCP ports) are set around the VM's, of a run
    that changed them. `restart`: whether one that was set still needs a restart.
    """

    source: Source
    target: Target
    switch: PowerSwitch
    restart: dict[InstanceSetting[Any], bool] = field(default_factory=dict)

    def read(self) -> VmFacts:
        """The VM as it is now."""
        return read.read_vm(self.switch.session, self.switch.ref)

    def done(self) -> Restored:
        """Wait for running tasks, restore everything, remove the run's mark."""
        source, switch = self.source, self.switch
        settle(switch.session, switch.ref, source.rules.task_timeout_s)
        facts = self.read()
        if facts.power is Power.OFF:
            evidence.collect(switch.journal, switch.session, switch.ref)
        if not source.is_known or source.held_by_another_run(facts):
            outcome = Restored(source.name, power=facts.power)
        else:
            with not_left_off(switch, self._left_off):
                outcome = self._restore_all(facts)
        self._unmark()
        made = switch.journal.made
        return replace(outcome, changes=net(made), powered_off=POWER_OFF[0] in made)

    def _left_off(self) -> bool:
        made, source = self.switch.journal.made, self.source
        ours = was_powered_off(source.power_lines(), made)
        return ours and wanted_power(source.power, made, self.read().power) is Power.ON

    def _unmark(self) -> None:
        """Remove the run's own mark. Retries if somebody writes to the VM meanwhile.

        Raises LeaseLost: then the mark is that of the process which has taken the VM over. One that does so
        after this check writes to the VM too.
        """
        session, ref, journal = self.switch.session, self.switch.ref, self.switch.journal
        for tries_left in reversed(range(WRITE_TRIES)):
            mark = run_mark.read_mark(session, ref)
            if self.source.foreign_mark(mark.text):
                return
            self.switch.fence()
            run_mark.clear_note(session, ref)
            if mark.text is None:
                return
            try:
                with journal.change("mark", [Edit(run_mark.LEASE_KEY, self.source.run, None)]):
                    run_mark.write_mark(session, ref, None, mark.change_version)
            except apply.ChangedMeanwhile:
                if not tries_left:
                    raise

    def _restore_all(self, facts: VmFacts) -> Restored:
        source, switch = self.source, self.switch
        wanted = wanted_power(source.power, switch.journal.made, facts.power)
        source.settings(facts)  # a conflict already: nothing is touched
        facts = self._after_shutdown(facts)
        if source.inside:
            self._set_during_this_boot(facts)
        if planned := source.change(facts):
            switch.say(f"restoring {len(planned.edits)} settings of {facts.name}")
        _, facts = write_settings(switch, "restore", facts, source.change, back_on=wanted is Power.ON)
        if wrong := source.change(facts):
            names = ", ".join(edit.setting for edit in wrong)
            raise NotAtBaseline(
                f"{source.name} reads back different from its baseline: {names}.",
                fix=f"vnuma restore {source.name}",
            )
        checked = sum(not is_evidence(name) for name in source.settings(facts))
        if source.inside:
            facts = self._set_what_was_left(facts)
        if wanted is Power.ON and facts.power is not Power.ON:
            switch.say(f"powering {source.name} on")
            switch.on_again(facts.host_moid)
        elif wanted is Power.OFF and facts.power is not Power.OFF:
            switch.off(back_on=False)
        state = self.read().power
        if state is Power.ON:
            for setting, value in source.inside.items():
                setting.verify(sql_server(self.target), value, source.rules.sql_timeout_s)
            checked += len(source.inside)
        return Restored(source.name, checked, checked, state)

    def _after_shutdown(self, facts: VmFacts) -> VmFacts:
        """The VM after a shutdown that this run requested: one still pending would undo the restore.

        Raises ShutdownTimeout.
        """
        lines = self.source.power_lines()
        if facts.power is not Power.ON or not is_asked_off(lines):
            return facts
        now, up_s = utc_now(), seconds_since_power_on(self.switch.session, self.switch.ref)
        if is_pending(lines[-1], now, up_s) and self.switch.is_late():
            self.switch.await_off()
        return self.read()

    def _is_our_server(self, facts: VmFacts) -> bool:
        return facts.power is Power.ON and self.source.proves(self.switch.session, self.switch.ref)

    def _set(self, setting: InstanceSetting[Any]) -> None:
        value = self.source.inside[setting]
        state = setting.switch(sql_server(self.target), value, self.switch.journal)
        self.restart[setting] = state.needs_restart

    def _set_during_this_boot(self, facts: VmFacts) -> None:
        """Set SQL Server's settings, so that the power-cycle for the shape makes them effective."""
        if self._is_our_server(facts):
            for setting in self.source.inside:
                with suppress(AttemptFailed, EnvironmentProblem):  # raised later
                    self._set(setting)

    def _set_what_was_left(self, facts: VmFacts) -> VmFacts:
        """Set what was not possible before; the VM stays off if a restart is needed.

        Raises SqlTimeout, SqlFailed, PowerFailed, ShutdownTimeout, WrongServer.
        """
        late = [setting for setting in self.source.inside if setting not in self.restart]
        if late and not self._is_our_server(facts):
            self._boot(facts)
        for setting in late:
            wait_for_server(sql_server(self.target), self.source.rules.sql_timeout_s)
            self._set(setting)
        if any(self.restart.values()) and self.read().power is Power.ON:
            self.switch.off(back_on=True)
        return self.read()

    def _boot(self, facts: VmFacts) -> None:
        """Power on and prove whose SQL Server answers: none before the power-on, and a later start."""
        switch, server = self.switch, sql_server(self.target)
        if facts.power is not Power.OFF:
            switch.off(back_on=True)
        require_silence(server, facts.name)
        switch.say(f"powering {facts.name} on to restore SQL Server")
        at = switch.on_again(facts.host_moid) or powered_on_at(switch.session, switch.ref)
        wait_for_server(server, self.source.rules.sql_timeout_s, seconds_since(switch.session, at))


def about_power(lines: Sequence[AuditLine]) -> list[AuditLine]:
    """Those about the VM's power, including failures."""
    return [line for line in lines if any(edit["setting"] == "power" for edit in line.change)]
