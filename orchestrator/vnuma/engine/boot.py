"""Boot a VM in its new shape, wait for guest and SQL Server, and see what the guest really got."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from vnuma.domain.arm import Arm
from vnuma.domain.effective import Judgement, judge
from vnuma.domain.evidence import LogEvidence
from vnuma.domain.facts import GuestTopology, HostFacts, VmFacts
from vnuma.domain.release import AUTOSIZE_COOKIE, AUTOSIZE_MAX
from vnuma.domain.server import ServerFacts
from vnuma.domain.setting import Power, Settings
from vnuma.domain.study import Evidence
from vnuma.engine import evidence, process_affinity, soft_numa, tcp_ports
from vnuma.engine.attempt import Attempt, step
from vnuma.engine.audit import Journal, journal_of
from vnuma.engine.baseline import baseline_ports, baseline_soft_numa
from vnuma.engine.context import VmContext
from vnuma.engine.dataset import is_expected
from vnuma.engine.identity import require_own_host
from vnuma.engine.late_log import owed_facts
from vnuma.engine.persist import on_vsphere
from vnuma.engine.poweroff import POWER_ON, Fence
from vnuma.engine.shape import diff_text, own_settings, plan_shape
from vnuma.errors import TopologyMismatch
from vnuma.logs.errorlog import ErrorLog
from vnuma.sqlserver import ready, topology
from vnuma.sqlserver import server as sql_facts
from vnuma.sqlserver.connect import connect
from vnuma.sqlserver.ready import QuietRule, Ready
from vnuma.store import attempts, facts
from vnuma.vsphere import power, read
from vnuma.vsphere.connect import Session
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.uptime import powered_on_at, seconds_since

LAB_QUIET_S = 0.5
"""The longest wait for a quiet guest on the lab, in seconds: nothing but SQL Server runs in its guest."""


@dataclass(frozen=True)
class Seen:
    """What a boot gave: the guest's topology, the server's facts and the judgement."""

    guest: GuestTopology
    server: ServerFacts
    judgement: Judgement


def power_on(
    session: Session,
    ref: VmRef,
    host_moid: str,
    *,
    tools_timeout_s: float,
    task_timeout_s: float,
    fence: Fence,
    journal: Journal,
) -> None:
    """Power on on that very host and wait until the guest's Tools run."""
    with journal.change("power", POWER_ON):
        power.power_on(session, ref, host_moid=host_moid, fence=fence, timeout_s=task_timeout_s)
    power.wait_for_guest(session, ref, timeout_s=tools_timeout_s)


def boot_cell(context: VmContext, attempt: Attempt) -> None:
    """The step `power_on` of a cell: it ends with running Tools."""
    limits = context.study.power

    def work(session: Session, ref: VmRef, tries: int) -> None:
        state, host_moid = read.read_power(session, ref)
        if tries > 1 and state is Power.ON:  # asked for already; only the answer was lost
            power.wait_for_guest(session, ref, timeout_s=limits.tools_timeout_s)
            return
        power_on(
            session,
            ref,
            host_moid,
            tools_timeout_s=limits.tools_timeout_s,
            task_timeout_s=limits.task_timeout_s,
            fence=context.fence,
            journal=journal_of(context),
        )

    with step(context, attempt, "power_on"):
        on_vsphere(context, attempt, "power_on", work)


def ready_cell(context: VmContext, attempt: Attempt) -> Seen:
    """The step `guest_ready` of a cell: SQL Server is ready, and the topology is the arm's.

    Raises TopologyMismatch when the guest sees something else: the attempt is invalid.
    """
    wanted = context.study.evidence
    with step(context, attempt, "guest_ready"):
        looked = on_vsphere(
            context, attempt, "guest_ready", lambda session, ref, _: _look(session, ref, wanted)
        )
        require_own_host(context.vm, looked.vm.host_name)
        came_up = _wait_for_server(context, looked)
        inside = _look_inside(context)
        log = evidence.evaluate(context, attempt, looked.log, looked.age_s, inside.guest)
        judgement = _judged(context, attempt, looked, inside, log)
        _record(context, attempt, looked, inside, log, judgement, came_up)
        if not judgement.counts:
            raise TopologyMismatch(
                f"{context.vm.name}, arm {attempt.label}: {'; '.join(judgement.mismatches)}. Not counted.",
                fix="See what the arm needs on this release: vnuma plan STUDY",
            )
        return Seen(inside.guest, inside.server, judgement)


@dataclass(frozen=True)
class _Looked:
    """What vSphere shows of a boot, when the power-on was, and how many seconds before `at` (our clock)."""

    vm: VmFacts
    host: HostFacts
    powered_on_at: datetime
    age_s: float
    at: float
    log: evidence.Fetched


@dataclass(frozen=True)
class _Inside:
    """What SQL Server shows of a boot."""

    guest: GuestTopology
    server: ServerFacts
    start: ErrorLog | None


def _look(session: Session, ref: VmRef, wanted: Evidence) -> _Looked:
    vm, host = read.read_vm_on_host(session, ref)
    began, at = powered_on_at(session, ref), time.monotonic()
    return _Looked(vm, host, began, seconds_since(session, began), at, evidence.fetch(session, vm, wanted))


def _wait_for_server(context: VmContext, looked: _Looked) -> Ready:
    """Until SQL Server of this boot is ready and the guest quiet, with its process affinity put right."""
    study, server = context.study, context.sql()
    came_up = ready.wait_ready(
        server,
        database=study.dataset.database if is_expected(context) else study.workload.waits_for(),
        powered_on_s=looked.age_s + time.monotonic() - looked.at,  # fetching a log may take its time
        deadline_s=study.power.sql_timeout_s,
        quiet=_quiet_rule(context),
    )
    process_affinity.put_right(context.vm, server, journal_of(context))
    return came_up


def _quiet_rule(context: VmContext) -> QuietRule:
    asked = context.study.quiet
    for_s = asked.for_s if context.run.simulated is None else min(asked.for_s, LAB_QUIET_S)
    return QuietRule(asked.cpu_percent, for_s, asked.timeout_s)


def _look_inside(context: VmContext) -> _Inside:
    with connect(context.sql()) as connection:
        return _Inside(
            topology.read_topology(connection),
            sql_facts.read_server(connection),
            evidence.started(connection),
        )


def _judged(
    context: VmContext, attempt: Attempt, looked: _Looked, inside: _Inside, log: LogEvidence
) -> Judgement:
    """All that speaks against this boot: its topology, the VM's settings, soft-NUMA and TCP ports."""
    arm = attempt.settings(context)
    own = own_settings(context, looked.vm, looked.host)
    judgement = _judge(arm, looked.vm, looked.host, own, inside.guest, inside.start, log)
    server, journal = context.sql(), journal_of(context)
    found = (
        soft_numa.mismatch(arm, baseline_soft_numa(context.vm), server, journal),
        tcp_ports.mismatch(context.study, baseline_ports(context.vm), server, journal),
    )
    wrong = tuple(sentence for sentence in found if sentence)
    return replace(judgement, mismatches=(*judgement.mismatches, *wrong)) if wrong else judgement


def _record(
    context: VmContext,
    attempt: Attempt,
    looked: _Looked,
    inside: _Inside,
    log: LogEvidence,
    judgement: Judgement,
    came_up: Ready,
) -> None:
    document = _document(looked.vm.settings, inside.guest, judgement)
    document |= {"log": evidence.log_document(log), "errorlog": evidence.start_document(inside.start)}
    owed = owed_facts(looked.powered_on_at, looked.log.why_not or "") if looked.log.owed else {}
    boot = {"server": asdict(inside.server), "ready": asdict(came_up)}
    with context.store.write() as connection:
        attempts.save_effective(connection, attempt.id, context.token, document)
        for scope, values in ((evidence.SCOPE, evidence.log_facts(log) | owed), ("boot", boot)):
            facts.add_attempt_facts(connection, attempt.id, context.token, scope, values)


def _judge(
    arm: Arm,
    vm: VmFacts,
    host: HostFacts,
    own: Settings,
    guest: GuestTopology,
    start: ErrorLog | None,
    log: LogEvidence,
) -> Judgement:
    """Against what the arm needs; whether the VM is still set to that is compared too."""
    planned = plan_shape(arm, vm, host, own)
    judgement = judge(arm, planned.prediction, guest, start=start, evidence=log)
    strayed = tuple(
        f"{edit.setting} is {diff_text(edit.before)}, the arm needs {diff_text(edit.after)}"
        for edit in planned.change
        if edit.setting not in (AUTOSIZE_COOKIE, AUTOSIZE_MAX)  # ESXi writes them at every power-on
    )
    return replace(judgement, mismatches=judgement.mismatches + strayed)


def _document(settings: object, guest: GuestTopology, judgement: Judgement) -> dict[str, object]:
    """Effective topology as JSON: vSphere's read-back and what SQL Server shows."""
    return {
        "vsphere": dict(settings),  # type: ignore[call-overload]
        "guest": asdict(guest),
        "mismatches": list(judgement.mismatches),
        "not_evaluated": list(judgement.not_evaluated),
        "notes": list(judgement.notes),
    }
