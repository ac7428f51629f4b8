"""Prove that the SQL Server in the inventory runs inside the VM, before writing to it.

The proof is a power-cycle of this run: nothing answered while the VM was off, and the server that answered
afterwards started later than the power-on. Each boot needs its own proof.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.endpoint import IdentityComparison, VmSide, compare
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.context import VmContext, holder
from vnuma.engine.access.guest_shell import facts_of
from vnuma.engine.access.target import Target
from vnuma.engine.audit.log import Journal
from vnuma.engine.lease.attempt import add_facts
from vnuma.engine.lease.baseline import ForeignChange, baseline_of, record_baseline, refuse_altered
from vnuma.engine.lease.vcenter_retry import on_vsphere
from vnuma.errors import (
    EnvironmentProblem,
    MachineUnreachable,
    MeasurementFailed,
    PreflightBlocked,
    StudySetupFailed,
    WrongServer,
)
from vnuma.logs import guest_tools
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance.endpoint import answers, read_server_side
from vnuma.store import cells, facts, leases
from vnuma.store.rows import Claim, Vm
from vnuma.vsphere import read, uptime
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.connect import connect as connect_vcenter
from vnuma.workloads.shell import Shell, linux_question, require

STATED = (
    "In a container, or behind a proxy, listener or cluster name, set vnuma_sql.identity: power_cycle, "
    "or {address: ITS OWN}."
)
"""What to write in the inventory where the right server looks like a wrong one."""

POWER_ON = "power_on"
"""Fact of an attempt: nothing answered before the power-on, and its time by vCenter's clock."""

PROOF = "sql_identity"
"""Fact of an attempt: the boot whose SQL Server was proven to run in the VM, and the evidence."""

_SAME_BOOT_S = 1.0
_TOOLS_REPORT_S = 30.0
"""VMware Tools report a guest's addresses up to half a minute after their start."""
_LOOK_AGAIN_S = 1.0


def require_silence(server: SqlServer, name: str) -> None:
    """Refuse a SQL Server that answers while its VM is off, as it runs elsewhere. Raises WrongServer."""
    answer = answers(server)
    if answer:
        raise WrongServer(
            f"{server.where} is not the SQL Server of {name}: the VM is off, and {answer}. "
            "Nothing was written to it.",
            fix="Correct vnuma_sql in the inventory, then run: vnuma doctor",
        )


def note_power_on(context: VmContext, attempt: Claim, at: datetime | None = None) -> None:
    """Record that nothing answered while the VM was off, and when vCenter powered it on."""
    noted = {"noted": {"silent": True, "at": at.isoformat() if at else None}}
    add_facts(context, attempt, POWER_ON, noted)


def noted_power_on(context: VmContext, attempt: Claim) -> tuple[bool, datetime | None]:
    """Whether this attempt has noted a power-on, and its time; None where vCenter's answer was lost."""
    noted = latest(context, POWER_ON, of=attempt) or {}
    at = noted.get("at")
    return bool(noted), datetime.fromisoformat(str(at)) if at else None


def prove(context: VmContext, attempt: Claim, vm: VmSide, boot_time: datetime, *, silent: bool) -> None:
    """Prove that the ready SQL Server belongs to this boot, and record it for steps that write to it.

    Raises WrongServer for another server, and where silence before the power-on was not checked.
    """
    server = context.sql()
    if not silent:
        raise WrongServer(
            f"{context.vm.name}: {server.where} was not seen to stop answering before this boot.",
            fix="Power the VM on in the same attempt with the role vm_power, which checks this.",
        )
    found = _compared(context, vm)
    if found.address == "contradicts":
        found = _compared(context, _once_reported(context, attempt, found))
    if found.contradictions:
        raise WrongServer(
            f"{server.where} is not the SQL Server of {context.vm.name}: {'; '.join(found.contradictions)}. "
            "Nothing was written to it.",
            fix=f"Correct vnuma_sql in the inventory. {STATED}",
        )
    proof = {"boot_time": boot_time.isoformat(), "address": found.address, "uptime": found.uptime}
    add_facts(context, attempt, PROOF, {"proof": proof})


def require_proven(context: VmContext, attempt: Claim) -> None:
    """Refuse to write to a SQL Server that this attempt has not proven. Raises WrongServer."""
    if latest(context, PROOF, of=attempt) is None:
        raise WrongServer(
            f"{context.vm.name}: {context.sql().where} is not proven to be its SQL Server.",
            fix="The role guest_ready proves it; run it in the same attempt, before this step.",
        )


def is_proven(context: VmContext, session: Session, ref: VmRef) -> bool:
    """Whether this run has proven that the SQL Server of the inventory runs in the VM, in the present boot.

    False for a server that does not answer.
    """
    proof = latest(context, PROOF)
    if proof is None:
        return False
    proven = datetime.fromisoformat(str(proof["boot_time"]))
    if abs((uptime.boot_time(session, ref) - proven).total_seconds()) > _SAME_BOOT_S:
        return False
    found = _looked_at(context, session, ref)
    return found is not None and not found.contradictions


def is_ours(context: VmContext, session: Session, ref: VmRef) -> bool:
    """Whether it may be restored now: proven by this run, or both address and uptime match."""
    if is_proven(context, session, ref):
        return True
    found = _looked_at(context, session, ref)
    return found is not None and found.agrees


def _looked_at(context: VmContext, session: Session, ref: VmRef) -> IdentityComparison | None:
    try:
        with connect(context.sql()) as connection:
            side = read_server_side(connection)
    except EnvironmentProblem:
        return None
    return compare(uptime.read_vm_side(session, ref), side, context.target.server.known_by)


def require_by_hand(target: Target, connection: pyodbc.Connection) -> None:
    """For work outside a run, which has no power-cycle: require that every fact is known and matches.

    Raises PreflightBlocked otherwise, and PowerFailed for a VM that is off.
    """
    with connect_vcenter(vcenter(target)) as session:
        vm = uptime.read_vm_side(session, read.find_vm(session, target.vm))
    found = compare(vm, read_server_side(connection), target.server.known_by)
    if not found.agrees:
        why = "; ".join(found.contradictions) or found.missing
        raise PreflightBlocked(
            f"P33 {target.server.host}:{target.server.port} is not proven to be the SQL Server of "
            f"{target.name}: {why}. Nothing was changed.",
            fix="Correct vnuma_sql, or give the server's own address: vnuma_sql.identity: {address: IP}. A "
            "run proves it by a power-cycle.",
        )


def _compared(context: VmContext, vm: VmSide) -> IdentityComparison:
    with connect(context.sql()) as connection:
        side = read_server_side(connection)
    return compare(vm, side, context.target.server.known_by)


def _once_reported(context: VmContext, attempt: Claim, found: IdentityComparison) -> VmSide:
    """The VM's side once Tools report the address that was reached, or at the deadline."""
    if context.target.server.known_by.is_stated:
        return found.vm
    deadline = time.monotonic() + min(_TOOLS_REPORT_S, context.study.power.tools_timeout_s)

    def look(session: Session, ref: VmRef, _tries: int) -> VmSide:
        while True:
            addresses = uptime.read_vm_side(session, ref).addresses
            if found.server.address in addresses or time.monotonic() >= deadline:
                return VmSide(addresses, found.vm.age_s, found.vm.at)
            time.sleep(_LOOK_AGAIN_S)

    return on_vsphere(context, attempt, "guest_ready", look)


def latest(context: VmContext, scope: str, of: Claim | None = None) -> dict[str, object] | None:
    """The value of the VM's latest fact of that scope, if the attempt `of` has it; None without one."""
    fact = context.last_fact(scope)
    if fact is None or (of is not None and fact.attempt_id != of.id):
        return None
    return dict(fact.value) if isinstance(fact.value, dict) else None


PROVEN_BOOT = "guest_boot"
"""Fact of an attempt: the kernel's number of the boot in which the guest was proven, or when its SQL Server
started.
"""


def proven_boot(context: VmContext, attempt: Claim) -> str:
    """That number. Raises WrongServer where the guest was not proven in this attempt."""
    fact = context.last_fact(PROVEN_BOOT)
    if fact is None or fact.attempt_id != attempt.id:
        raise WrongServer(
            f"{context.vm.name}: its guest is not proven to be the VM's.",
            fix="The role guest_ready proves it; run it in the same attempt, before this step.",
        )
    return str(fact.value)


CLIENT = "client_identity"
"""Fact of a VM: the machine where its workload's programs run, its boot then, and the lease."""


def known_client(context: VmContext) -> dict[str, object] | None:
    """That machine as it was seen last; None before the first program, which needs it."""
    return latest(context, CLIENT)


def ask_client(context: VmContext) -> dict[str, object]:
    """The workload's client as it shows itself now. Raises WrongServer for another machine than the run has
    used for this VM, MachineUnreachable.
    """
    name = str(context.study.workload.client_host)
    seen, known = facts_of(name, context.workload_shell()(linux_question("/"))), known_client(context)
    machine = f"{seen.identity} {seen.uuid}"
    if known and known["machine"] != machine:
        raise WrongServer(
            f"Ansible's connection to {name} reaches another machine than the run has used: it identifies "
            f"itself as {machine}, not as {known['machine']}. Nothing was run there.",
            fix="Correct ansible_host in the inventory.",
        )
    return {"machine": machine, "boot": seen.boot, "lease": context.token}


def client_boot(context: VmContext, attempt: Claim) -> str:
    """The number of the client's boot, proven once in a lease. Raises WrongServer, StudySetupFailed.

    An attempt that is repeated asks again: a reboot of the client may have ended the one before.
    """
    known = known_client(context)
    if known is None or known["lease"] != context.token or attempt.number > 1:
        try:
            known = ask_client(context)
        except MachineUnreachable as error:  # no cell could run its programs
            raise StudySetupFailed(error.what, fix=error.fix) from error
        with context.store.write() as connection:
            facts.add_vm_facts(connection, context.vm.id, CLIENT, {"client": known})
    return str(known["boot"])


WHERE = {
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "transparent_hugepages": "/sys/kernel/mm/transparent_hugepage/enabled",
}
"""Their files: https://docs.kernel.org/admin-guide/sysctl/kernel.html and admin-guide/mm/transhuge.html."""


def kernel_key(name: str) -> str:
    """Its name in changes and audit lines."""
    return f"linux.{name}"


def read_kernel(shell: Shell, names: Iterable[str]) -> dict[str, str]:
    """Their present values, without those that the kernel lacks. Raises MeasurementFailed."""
    script = "".join(f"echo '@@ {name}'; cat {WHERE[name]} 2>/dev/null\n" for name in names)
    shown = guest_tools.sections(require(shell, f"{script}true\n", "reading the kernel's settings"))
    return {name: chosen(text) for name, text in shown.items() if text.strip()}


def chosen(text: str) -> str:
    """A setting's value: where the file lists the choices, the word in brackets."""
    return text.partition("[")[2].partition("]")[0] or text.strip()


def foreign_kernel_changes(
    before: Mapping[str, str], ours: Mapping[str, str], now: Mapping[str, str]
) -> list[ForeignChange]:
    """Settings that have neither their value from before the run nor the one that the study holds."""
    return [
        ForeignChange(kernel_key(name), value, ours.get(name), now.get(name))
        for name, value in before.items()
        if now.get(name) not in (value, ours.get(name))
    ]


def set_kernel(shell: Shell, wanted: Mapping[str, str], before: Mapping[str, str], journal: Journal) -> None:
    """Set them. `before` are the old values for the journal.

    Raises MeasurementFailed, also for a value that reads back differently.
    """
    for name, value in wanted.items():
        with journal.change("kernel setting", [Edit(kernel_key(name), before.get(name), value)]):
            text = require(shell, f"echo {value} > {WHERE[name]} && cat {WHERE[name]}", f"setting {name}")
        if chosen(text) != value:
            raise MeasurementFailed(
                f"{journal.vm}: {name} reads back {chosen(text)}, not {value}.",
                fix=f"Check {WHERE[name]} there.",
            )


KERNEL = "kernel"
"""In the baseline where nothing boots the guest: all kernel settings, also those that no study changes."""


def take_over_unshaped(free: VmContext) -> int:
    """Lease a target without a hypervisor and commit its baseline. Returns the fencing token.

    Raises VmHeld, and NotAtBaseline as `refuse_altered`.
    """
    store, run, vm = free.store, free.run, free.vm
    refuse_altered(store, run, vm)
    with store.read() as connection:
        known = facts.facts_of_run(connection, run.id, "machine")
    seen = {fact.key: fact.value for fact in known if fact.vm_id == vm.id}
    baseline = {KERNEL: {name: seen[name] for name in WHERE if seen.get(name) is not None}}
    if vm.baseline is None:
        record_baseline(Journal(store, vm.vm_key, vm.name, run), baseline)
    with store.write() as connection:
        token = leases.take_lease(connection, vm.vm_key, run.id, holder())
        cells.interrupt_attempts(connection, vm.id, token)
        if vm.baseline is None:
            cells.save(connection, vm.id, token, baseline)
    return token


def kernel_baseline(vm: Vm) -> dict[str, str]:
    """Kernel settings before the run, by name."""
    return dict(baseline_of(vm).get(KERNEL, {}))
