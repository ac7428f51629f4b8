"""Boot a VM in its new shape, wait for guest and SQL Server, and check the resulting topology."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial

from vnuma.domain.arm.effective import Judgement, judge
from vnuma.domain.study.study import Quiet
from vnuma.domain.topology.evidence import LogEvidence
from vnuma.domain.topology.release import AUTOSIZE_COOKIE, AUTOSIZE_MAX
from vnuma.domain.vm.change import value_words
from vnuma.domain.vm.endpoint import VmSide
from vnuma.domain.vm.facts import GuestTopology, HostFacts, VmFacts
from vnuma.domain.vm.linux import LinuxFacts, same_uuid
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.guest_shell import answering, facts_of
from vnuma.engine.access.target import UNSHAPED
from vnuma.engine.audit.log import journal_of
from vnuma.engine.cell import evidence
from vnuma.engine.cell.dataset import is_expected, note_lost
from vnuma.engine.cell.shape import PowerSwitch, plan_of_cell
from vnuma.engine.instance import sql_identity
from vnuma.engine.instance.sql_settings import PROCESS_AFFINITY, SETTINGS, Boot
from vnuma.engine.lease.attempt import add_facts, step
from vnuma.engine.lease.vcenter_retry import on_hypervisor, on_vsphere, refuse_if_stopped, report_step
from vnuma.engine.lease.whose_vm import require_own_host
from vnuma.errors import DatabaseMissing, TopologyMismatch, WrongServer
from vnuma.logs.errorlog import ErrorLog
from vnuma.logs.guest_tools import machine_busy, machine_time
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance import ready
from vnuma.sqlserver.instance import server as sql_facts
from vnuma.sqlserver.instance.ready import Quietness, Ready
from vnuma.store import attempts
from vnuma.store.rows import Claim, Vm
from vnuma.vsphere import power, read, uptime
from vnuma.vsphere.connect import Session, VmRef
from vnuma.workloads.interface import Document
from vnuma.workloads.shell import Shell, linux_question


@dataclass(frozen=True)
class VsphereView:
    """What vSphere shows of a boot: `powered_on_at` by vCenter's clock, `boot_time` by the host's."""

    vm: VmFacts
    host: HostFacts
    powered_on_at: datetime
    boot_time: datetime
    side: VmSide
    silent: bool
    """Whether nothing answered before the power-on, as this attempt has noted."""
    log: evidence.Fetched


@dataclass(frozen=True)
class GuestView:
    """What the guest shows of a boot, and what a vmware.log proves of it. `boot` are facts for the store."""

    guest: GuestTopology
    boot: Mapping[str, object]
    start: ErrorLog | None
    log: LogEvidence


def looked_at(context: VmContext, attempt: Claim) -> VsphereView | None:
    """What vSphere shows of this boot; None where nothing was booted. Raises HostChanged."""
    looked = on_hypervisor(
        context, attempt, "guest_ready", lambda session, ref, _: _look(context, attempt, session, ref)
    )
    if looked:
        require_own_host(context.vm, looked.vm.host_name)
    return looked


def _look(context: VmContext, attempt: Claim, session: Session, ref: VmRef) -> VsphereView:
    vm, host = read.read_vm_on_host(session, ref)
    side, booted = uptime.read_vm_side(session, ref), uptime.boot_time(session, ref)
    silent, at = sql_identity.noted_power_on(context, attempt)
    if at:
        side = replace(side, age_s=uptime.seconds_since(session, at), at=time.monotonic())
    fetched = evidence.fetch(session, vm, context.study.evidence)
    at = at or uptime.powered_on_at(session, ref)
    return VsphereView(vm, host, at, booted, side, silent, fetched)


def log_of(context: VmContext, attempt: Claim, looked: VsphereView, guest: GuestTopology) -> LogEvidence:
    """What this boot's vmware.log proves, beside the guest's own view."""
    if looked.log.file is None:
        return LogEvidence(why_not=looked.log.why_not)
    age_s = looked.side.age_s
    return evidence.evaluate(context.store, context.vm.id, attempt.id, looked.log.file, age_s, guest)


PROOF = "guest_identity"
"""Fact of an attempt: the firmware's UUID by which the guest was proven to be the VM's."""


def shell_ready(context: VmContext, attempt: Claim, looked: VsphereView) -> GuestView:
    """Wait until the guest answers, and prove by its firmware's UUID that it is the VM's.

    Raises MachineUnreachable at the deadline, WrongServer for another machine's shell, Interrupted.
    """
    heed = partial(refuse_if_stopped, context, "It waited for the guest.")
    shell = answering(context.shell(), context.study.power.sql_timeout_s, heed)
    seen = proven_guest(context.vm, shell, looked.vm.bios_uuid)
    add_facts(context, attempt, PROOF, {"uuid": looked.vm.bios_uuid})
    add_facts(context, attempt, sql_identity.PROVEN_BOOT, {"boot": seen.boot})
    quiet = wait_quiet(shell, _quiet_rule(context), heed)
    proven = log_of(context, attempt, looked, seen.topology)
    facts_of_boot = {"linux": seen.kernel, "ready": {"quietness": asdict(quiet)}}
    return GuestView(seen.topology, facts_of_boot, None, proven)


_CPU_TIME = "head -n 1 </proc/stat"


def wait_quiet(shell: Shell, rule: Quiet, heed: Callable[[], None]) -> Quietness:
    """Wait until the guest's CPUs are quiet for the rule's time in a row. Raises MachineUnreachable."""
    began = time.monotonic()
    while rule.for_s:
        lines = shell(f"{_CPU_TIME}; sleep {rule.for_s:g}; {_CPU_TIME}").stdout.splitlines()
        before, after = [machine_time(line) for line in lines] if len(lines) == 2 else (None, None)
        busy, waited_s = machine_busy(before, after), time.monotonic() - began
        if busy is None:
            return Quietness(None, "the guest's /proc/stat could not be read", waited_s=waited_s)
        percent = 100 * busy
        if percent < rule.cpu_percent or waited_s >= rule.timeout_s:
            return Quietness(percent < rule.cpu_percent, guest_cpu_percent=percent, waited_s=waited_s)
        heed()
    return Quietness(None, "quiet.for_s is 0")


def proven_guest(vm: Vm, shell: Shell, bios_uuid: str | None) -> LinuxFacts:
    """What the shell's machine says of itself. Raises WrongServer unless it is the VM with that firmware; or,
    where nothing boots it, the machine that the run began with.
    """
    seen = facts_of(vm.name, shell(linux_question("/")))
    if bios_uuid is None:
        shown, wanted = seen.identity, vm.vm_key.removeprefix(UNSHAPED)
        same = shown == wanted
    else:
        shown, wanted = seen.uuid, bios_uuid
        same = same_uuid(shown, wanted)
    if same:
        return seen
    raise WrongServer(
        f"Ansible's connection to {vm.name} reaches another machine: it identifies itself as "
        f"{shown or 'nothing'}, not as {wanted}. Nothing was written to it.",
        fix="Correct ansible_host in the inventory.",
    )


def proven_uuid(context: VmContext) -> str | None:
    """The UUID by which this run has proven the VM's guest; None where it never did, and wrote nothing."""
    fact = context.last_fact(PROOF)
    return str(fact.value) if fact else None


_HEED_S = 2.0
"""How often a wait for SQL Server looks whether the run is asked to stop."""

LAB_QUIET_S = 0.5
"""Longest wait for a quiet guest on the lab, in seconds: its guests run only SQL Server."""


def boot_cell(context: VmContext, attempt: Claim) -> Document | None:
    """The step `power_on` of a cell: ends with running Tools. Raises WrongServer. None if it did nothing.

    While the VM is still off, nothing may answer as its SQL Server. Does nothing without a hypervisor.
    """
    with step(context, attempt, "power_on"):
        _boot(context, attempt, "power_on")
    return {"power": str(Power.ON)} if context.made else None


def _boot(context: VmContext, attempt: Claim, name: str) -> None:

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


def ready_cell(context: VmContext, attempt: Claim) -> Document | None:
    """The step `guest_ready`: wait for the guest, prove that it is the VM's, check and show its topology.

    None where nothing was booted: there only the machine is proven to be the run's. Raises WrongServer, and
    TopologyMismatch if the guest sees another topology: the attempt is then invalid.
    """
    with step(context, attempt, "guest_ready"):
        looked = looked_at(context, attempt)
        if looked is None:
            if "shell" in context.study.workload.needs:
                seen = proven_guest(context.vm, context.shell(), None)
                add_facts(context, attempt, sql_identity.PROVEN_BOOT, {"boot": seen.boot})
            return None
        if "sql_server" in context.study.workload.needs:
            looked, inside, wrong = _sql_server_ready(context, attempt, looked)
        else:
            inside, wrong = shell_ready(context, attempt, looked), []
        judgement = _judged(context, attempt, looked, inside, wrong)
        _record(context, attempt, looked, inside, judgement)
        if not judgement.counts:
            raise TopologyMismatch(
                f"{context.vm.name}, arm {attempt.label}: {'; '.join(judgement.mismatches)}. This "
                "attempt does not count.",
                fix="Check what the arm needs on this release: vnuma plan STUDY",
            )
        return {"guest": asdict(inside.guest), **inside.boot}


def _sql_server_ready(
    context: VmContext, attempt: Claim, looked: VsphereView
) -> tuple[VsphereView, GuestView, list[str]]:
    """This boot's SQL Server: ready, proven, and with the arm's settings.

    SQL Server's settings are written only after this run has proven that the server runs in the VM. So if the
    arm needs another value than this boot has, the VM is power-cycled once more.
    """
    came_up = _came_up(context, attempt, looked)
    wrong, was_set = _settle(context, attempt, looked)
    if was_set:
        looked = _power_cycle(context, attempt) or looked
        came_up = _came_up(context, attempt, looked)
        wrong, _ = _settle(context, attempt, looked)
    return looked, _look_inside(context, attempt, looked, came_up), wrong


def _came_up(context: VmContext, attempt: Claim, looked: VsphereView) -> Ready:
    """Wait until this boot's SQL Server is ready and proven to run inside the VM."""
    came_up = _wait_for_server(context, looked)
    sql_identity.prove(context, attempt, looked.side, looked.boot_time, silent=looked.silent)
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


def _settle(context: VmContext, attempt: Claim, looked: VsphereView) -> tuple[list[str], bool]:
    """Change SQL Server settings that do not match the arm in this boot, for the next one.

    Returns what does not match, and whether something was changed, so that another boot would help.
    """
    arm, server, journal = context.study.arm(attempt.arm), context.sql(), journal_of(context)
    prediction = plan_of_cell(context, arm, looked.vm, looked.host).prediction
    boot = Boot(context.study, arm, context.vm, prediction)
    before = len(journal.made)
    found = [setting.mismatch(boot, server, journal) for setting in SETTINGS]
    return list(filter(None, found)), len(journal.made) > before


def _power_cycle(context: VmContext, attempt: Claim) -> VsphereView | None:
    """Power-cycle once more so that SQL Server's new settings take effect."""

    def off(session: Session, ref: VmRef, _tries: int) -> None:
        say = report_step(context, attempt, "guest_ready")
        PowerSwitch.of(context, session, ref, say).off(back_on=False)

    on_vsphere(context, attempt, "guest_ready", off)
    _boot(context, attempt, "guest_ready")
    return looked_at(context, attempt)


def _quiet_rule(context: VmContext) -> Quiet:
    asked = context.study.quiet
    for_s = asked.for_s if context.run.simulated is None else min(asked.for_s, LAB_QUIET_S)
    return asked.model_copy(update={"for_s": for_s})


def _look_inside(context: VmContext, attempt: Claim, looked: VsphereView, came_up: Ready) -> GuestView:
    with connect(context.sql()) as connection:
        guest, server = sql_facts.read_topology(connection), sql_facts.read_server(connection)
        start = evidence.started(connection)
    if context.study.workload.runs_programs:
        add_facts(context, attempt, sql_identity.PROVEN_BOOT, {"boot": server.start_time})
    proven = log_of(context, attempt, looked, guest)
    return GuestView(guest, {"server": asdict(server), "ready": asdict(came_up)}, start, proven)


def _judged(
    context: VmContext, attempt: Claim, looked: VsphereView, inside: GuestView, wrong: list[str]
) -> Judgement:
    """Everything that invalidates this boot: topology, VM settings, soft-NUMA and TCP ports."""
    arm = context.study.arm(attempt.arm)
    planned = plan_of_cell(context, arm, looked.vm, looked.host)
    judgement = judge(arm, planned.prediction, inside.guest, start=inside.start, evidence=inside.log)
    strayed = (
        f"{edit.setting} is {value_words(edit.before)}, the arm needs {value_words(edit.after)}"
        for edit in planned.change
        if edit.setting not in (AUTOSIZE_COOKIE, AUTOSIZE_MAX)  # ESXi writes these at every power-on
    )
    return replace(judgement, mismatches=(*judgement.mismatches, *strayed, *wrong))


def _record(
    context: VmContext,
    attempt: Claim,
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
        "errorlog": asdict(inside.start) if inside.start else None,
    }
    missing = {"powered_on_at": looked.powered_on_at.isoformat(), "why": looked.log.why_not or ""}
    pending = {evidence.PENDING: missing} if looked.log.pending else {}
    with context.store.write() as connection:
        known = {evidence.SCOPE: evidence.log_facts(inside.log) | pending, "boot": dict(inside.boot)}
        attempts.save_effective(connection, attempt.id, context.token, effective, known)
