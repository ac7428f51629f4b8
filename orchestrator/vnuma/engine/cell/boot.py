"""Boot a VM in its new shape, wait for guest and SQL Server, and check the resulting topology."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from functools import partial

from vnuma.domain.arm.effective import Judgement, judge
from vnuma.domain.topology.release import AUTOSIZE_COOKIE, AUTOSIZE_MAX
from vnuma.domain.vm.change import value_words
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.context import VmContext
from vnuma.engine.audit.journal import journal_of
from vnuma.engine.cell import evidence
from vnuma.engine.cell.booted import GuestView, VsphereView, log_of, looked_at
from vnuma.engine.cell.dataset import is_expected, note_lost
from vnuma.engine.cell.evidence import pending_facts
from vnuma.engine.cell.power_switch import PowerSwitch
from vnuma.engine.cell.shape import own_settings, plan_shape
from vnuma.engine.cell.shell_guest import proven_guest, shell_ready
from vnuma.engine.instance import sql_identity
from vnuma.engine.instance.instance_setting import Boot
from vnuma.engine.instance.process_affinity import PROCESS_AFFINITY
from vnuma.engine.instance.settings import SETTINGS
from vnuma.engine.lease.attempt import Attempt, step
from vnuma.engine.lease.vcenter_retry import on_hypervisor, on_vsphere, refuse_if_stopped, report_step
from vnuma.errors import DatabaseMissing, TopologyMismatch
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance import ready
from vnuma.sqlserver.instance import server as sql_facts
from vnuma.sqlserver.instance.ready import QuietRule, Ready
from vnuma.store import attempts
from vnuma.vsphere import power, read
from vnuma.vsphere.connect import Session, VmRef

_HEED_S = 2.0
"""How often a wait for SQL Server looks whether the run is asked to stop."""

LAB_QUIET_S = 0.5
"""Longest wait for a quiet guest on the lab, in seconds: its guests run only SQL Server."""


def boot_cell(context: VmContext, attempt: Attempt) -> None:
    """The step `power_on` of a cell: ends with running Tools. Raises WrongServer.

    While the VM is still off, nothing may answer as its SQL Server. Does nothing without a hypervisor.
    """
    with step(context, attempt, "power_on"):
        _boot(context, attempt, "power_on")


def _boot(context: VmContext, attempt: Attempt, name: str) -> None:

    def work(session: Session, ref: VmRef, tries: int) -> None:
        state, host_moid = read.read_power(session, ref)
        if tries > 1 and state is Power.ON:  # the request was sent; only its answer was lost
            power.wait_for_guest(session, ref, timeout_s=context.study.power.tools_timeout_s)
            return
        noted = partial(sql_identity.note_power_on, context, attempt)
        if state is Power.OFF and "sql_server" in context.study.workload.needs:
            sql_identity.require_silence(context.sql(), context.vm.name)
            noted()
        PowerSwitch.of(context, session, ref).on(host_moid, noted)

    on_hypervisor(context, attempt, name, work)


def ready_cell(context: VmContext, attempt: Attempt) -> GuestView | None:
    """The step `guest_ready`: wait for the guest, prove that it is the VM's, and check the topology.

    None where nothing was booted: there only the machine is proven to be the run's. Raises WrongServer, and
    TopologyMismatch if the guest sees another topology: the attempt is then invalid.
    """
    with step(context, attempt, "guest_ready"):
        looked = looked_at(context, attempt)
        if looked is None:
            if "shell" in context.study.workload.needs:
                proven_guest(context.vm, context.shell(), None)
            return None
        if "sql_server" in context.study.workload.needs:
            looked, inside, wrong = _sql_server_ready(context, attempt, looked)
        else:
            inside, wrong = shell_ready(context, attempt, looked), ()
        judgement = _judged(context, attempt, looked, inside, wrong)
        _record(context, attempt, looked, inside, judgement)
        if not judgement.counts:
            raise TopologyMismatch(
                f"{context.vm.name}, arm {attempt.label}: {'; '.join(judgement.mismatches)}. This "
                "attempt does not count.",
                fix="Check what the arm needs on this release: vnuma plan STUDY",
            )
        return inside


def _sql_server_ready(
    context: VmContext, attempt: Attempt, looked: VsphereView
) -> tuple[VsphereView, GuestView, tuple[str, ...]]:
    """This boot's SQL Server: ready, proven, and with the arm's settings.

    SQL Server's settings are written only after this run has proven that the server runs in the VM. So if the
    arm needs another value than this boot has, the VM is power-cycled once more.
    """
    came_up = _came_up(context, attempt, looked)
    wrong = _settle(context, attempt, looked)
    if wrong.cycle_helps:
        looked = _power_cycle(context, attempt) or looked
        came_up = _came_up(context, attempt, looked)
        wrong = _settle(context, attempt, looked)
    return looked, _look_inside(context, attempt, looked, came_up), wrong.sentences


@dataclass(frozen=True)
class _SettingMismatch:
    """SQL Server settings that do not match the arm in this boot, and whether another boot would help."""

    sentences: tuple[str, ...]
    cycle_helps: bool


def _came_up(context: VmContext, attempt: Attempt, looked: VsphereView) -> Ready:
    """Wait until this boot's SQL Server is ready and proven to run inside the VM."""
    came_up = _wait_for_server(context, looked)
    sql_identity.prove(context, attempt, looked.side, looked.boot_time, noted=looked.noted)
    PROCESS_AFFINITY.reset_to_baseline(context.vm, context.sql(), journal_of(context))
    return came_up


def _wait_for_server(context: VmContext, looked: VsphereView) -> Ready:
    """Wait until this boot's SQL Server is ready and the guest quiet.

    A dataset that somebody dropped is not waited for: it is made again. Raises Interrupted.
    """
    study = context.study

    def until_online(database: str | None) -> Ready:
        return ready.wait_ready(
            context.sql(),
            database=database,
            powered_on_s=looked.side.age_at(time.monotonic()),  # fetching a log may take some time
            deadline_s=study.power.sql_timeout_s,
            quiet=_quiet_rule(context),
            clock=_Heeding(context),
        )

    if is_expected(context):
        try:
            return until_online(study.dataset.database)
        except DatabaseMissing:
            note_lost(context)
    return until_online(study.workload.waits_for())


@dataclass(frozen=True)
class _Heeding(ready.Clock):
    """A clock whose waits end within seconds, by Interrupted, when the run is asked to stop."""

    context: VmContext

    def wait(self, seconds: float) -> None:
        until = self.now() + seconds
        while True:
            refuse_if_stopped(self.context, "It waited for SQL Server.")
            left_s = until - self.now()
            if left_s <= 0:
                return
            super().wait(min(left_s, _HEED_S))


def _settle(context: VmContext, attempt: Attempt, looked: VsphereView) -> _SettingMismatch:
    """Change SQL Server settings that do not match the arm in this boot, for the next one."""
    arm, server, journal = attempt.settings(context), context.sql(), journal_of(context)
    own = own_settings(context, looked.vm, looked.host)
    prediction = plan_shape(arm, looked.vm, looked.host, own).prediction
    boot = Boot(context.study, arm, context.vm, prediction)
    before = len(journal.made)
    found = [setting.mismatch(boot, server, journal) for setting in SETTINGS]
    sentences = tuple(sentence for sentence in found if sentence)
    return _SettingMismatch(sentences, cycle_helps=len(journal.made) > before)


def _power_cycle(context: VmContext, attempt: Attempt) -> VsphereView | None:
    """Power-cycle once more so that SQL Server's new settings take effect."""

    def off(session: Session, ref: VmRef, _tries: int) -> None:
        say = report_step(context, attempt, "guest_ready")
        PowerSwitch.of(context, session, ref, say).off(back_on=False)

    on_vsphere(context, attempt, "guest_ready", off)
    _boot(context, attempt, "guest_ready")
    return looked_at(context, attempt)


def _quiet_rule(context: VmContext) -> QuietRule:
    asked = context.study.quiet
    for_s = asked.for_s if context.run.simulated is None else min(asked.for_s, LAB_QUIET_S)
    return QuietRule(asked.cpu_percent, for_s, asked.timeout_s)


def _look_inside(context: VmContext, attempt: Attempt, looked: VsphereView, came_up: Ready) -> GuestView:
    with connect(context.sql()) as connection:
        guest, server = sql_facts.read_topology(connection), sql_facts.read_server(connection)
        start = evidence.started(connection)
    proven = log_of(context, attempt, looked, guest)
    return GuestView(guest, {"server": asdict(server), "ready": asdict(came_up)}, start, proven)


def _judged(
    context: VmContext, attempt: Attempt, looked: VsphereView, inside: GuestView, wrong: tuple[str, ...]
) -> Judgement:
    """Everything that invalidates this boot: topology, VM settings, soft-NUMA and TCP ports."""
    arm, own = attempt.settings(context), own_settings(context, looked.vm, looked.host)
    planned = plan_shape(arm, looked.vm, looked.host, own)
    judgement = judge(arm, planned.prediction, inside.guest, start=inside.start, evidence=inside.log)
    strayed = (
        f"{edit.setting} is {value_words(edit.before)}, the arm needs {value_words(edit.after)}"
        for edit in planned.change
        if edit.setting not in (AUTOSIZE_COOKIE, AUTOSIZE_MAX)  # ESXi writes these at every power-on
    )
    return replace(judgement, mismatches=(*judgement.mismatches, *strayed, *wrong))


def _record(
    context: VmContext,
    attempt: Attempt,
    looked: VsphereView,
    inside: GuestView,
    judgement: Judgement,
) -> None:
    effective = {
        "vsphere": dict(looked.vm.settings),
        "guest": asdict(inside.guest),
        "mismatches": list(judgement.mismatches),
        "not_evaluated": list(judgement.not_evaluated),
        "notes": list(judgement.notes),
        "log": evidence.log_document(inside.log),
        "errorlog": evidence.start_document(inside.start),
    }
    pending = pending_facts(looked.powered_on_at, looked.log.why_not or "") if looked.log.pending else {}
    with context.store.write() as connection:
        known = {evidence.SCOPE: evidence.log_facts(inside.log) | pending, "boot": dict(inside.boot)}
        attempts.save_effective(connection, attempt.id, context.token, effective, known)
