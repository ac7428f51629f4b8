"""Evidence about a boot besides the guest's own view, so that three sources can be compared.

Missing evidence never fails a cell: the reason is recorded instead. The vmware.log of a running VM comes from
its host. Where it was not available, it is fetched after power-off, when vCenter has it too, until the next
power-on rotates it. It is stored with the boot's attempt, which has ended by then; it does not change its
outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from vnuma.domain.study.study import Evidence
from vnuma.domain.topology.evidence import LOG_WORDS, LogEvidence, evidence_of_boot
from vnuma.domain.vm.facts import GuestTopology, VmFacts
from vnuma.engine.audit.log import Journal
from vnuma.errors import PrivilegeMissing, SqlFailed, StoreError
from vnuma.logs.errorlog import ErrorLog
from vnuma.logs.vmware import read_vmware_log
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance.server import read_start
from vnuma.store import attempts, facts
from vnuma.store.open import Store
from vnuma.store.rows import Run
from vnuma.vsphere import read
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.log_file import LogFile, LogUnavailable, fetch_log
from vnuma.vsphere.uptime import seconds_since

SCOPE = "vmware_log"
"""Facts of an attempt: its log's source and start time, and the log's lines on vNUMA, verbatim."""


@dataclass(frozen=True)
class Fetched:
    """A fetched log, or why there is none and whether it may be available after power-off."""

    file: LogFile | None = None
    why_not: str | None = None
    pending: bool = False


def fetch(session: Session, vm: VmFacts, wanted: Evidence) -> Fetched:
    """Fetch the log of the VM's boot from its host: a ticket and one request."""
    if wanted.vmware_log == "off":
        return Fetched(why_not="the study excludes it (evidence.vmware_log)")
    try:
        return Fetched(fetch_log(session, vm))
    except LogUnavailable as error:
        return Fetched(why_not=error.what, pending=True)


def evaluate(
    store: Store, vm_id: int, attempt_id: int, file: LogFile, boot_age_s: float, guest: GuestTopology
) -> LogEvidence:
    """What a fetched log proves about a boot that was `boot_age_s` old when the log was fetched."""
    earlier = store.ask(facts.last_value, vm_id, SCOPE, "began", not_of=attempt_id)
    return evidence_of_boot(
        read_vmware_log(file.text),
        source=file.source,
        host_time=file.host_time,
        boot_age_s=boot_age_s,
        earlier=earlier if isinstance(earlier, str) else None,
        guest=guest,
    )


def started(connection: pyodbc.Connection) -> ErrorLog | None:
    """What the error log shows of the server's start; None without permission to read it."""
    try:
        return read_start(connection)
    except (SqlFailed, PrivilegeMissing):
        return None


def log_facts(evidence: LogEvidence) -> dict[str, object]:
    """The raw evidence, as facts of the attempt."""
    if evidence.log is None:
        return {}
    began = evidence.log.began
    return {
        "source": evidence.source,
        "began": began.isoformat() if began else None,
        "lines": list(evidence.log.lines),
    }


def log_document(evidence: LogEvidence) -> dict[str, object]:
    """The log's content, for the attempt's effective topology."""
    known: dict[str, object] = {"source": evidence.source, "not_evaluated": evidence.why_not}
    if (log := evidence.log) is None:
        return known
    return known | {
        "vcpus": log.vcpus,
        "vnuma_nodes": log.vpds,
        "node_sizes": list(log.vpd_sizes),
        "physical_domains": log.ppds,
        "physical_sizes": list(log.ppd_sizes),
        "forced_uma": log.forced_uma,
        "consolidation": log.consolidation,
        "prefer_ht": log.prefer_ht,
        "suggested_cores_per_socket": log.suggested_cores_per_socket,
        "stored": dict(log.written),
    }


PENDING = "owed"
"""Fact of an attempt whose log is still missing: the power-on time, and why there is no log."""

LATE = "late"
"""Fact of an attempt whose log was fetched after power-off: why it was not available before."""


def collect(journal: Journal, session: Session, ref: VmRef) -> None:
    """Fetch the missing log of the VM's last boot in the journal's run, if any. The VM must be off.

    Tried once; if that fails, both reasons are stored and the log stays not evaluated. A failing store does
    not prevent a VM's restore. Raises VCenterUnreachable.
    """
    if journal.run is None:
        return
    try:
        _fetch_pending(journal.store, journal.run, journal.vm_key, session, ref)
    except StoreError as error:
        journal.on_store_error(error)


def _fetch_pending(store: Store, run: Run, vm_key: str, session: Session, ref: VmRef) -> None:
    """Fetch the log of the VM's last boot if it is still missing, and amend what is stored of the boot."""
    last = store.ask(facts.last_of_vm, run.id, vm_key, SCOPE)
    if last is None or last.key != PENDING or last.attempt_id is None:
        return
    number, pending = last.attempt_id, cast("dict[str, str]", last.value)
    attempt = store.ask(attempts.get_attempt, number)
    effective: Any = attempt.effective
    try:
        file = fetch_log(session, read.read_vm(session, ref))
    except LogUnavailable as error:
        found = LogEvidence(why_not=f"{pending['why']}; after power-off: {error.what}")
    else:
        age_s = seconds_since(session, datetime.fromisoformat(pending["powered_on_at"]))
        seen = effective["guest"]
        guest = GuestTopology(seen["vcpus"], None, None, seen["numa_nodes"], seen["sql_cpu_nodes"], None)
        found = evaluate(store, attempt.vm_id, attempt.id, file, age_s, guest)
    not_evaluated = [words for words in effective["not_evaluated"] if not words.startswith(LOG_WORDS)]
    if found.why_not is not None:
        not_evaluated.append(f"{LOG_WORDS} {found.why_not}")
    amended = {**effective, "log": log_document(found), "not_evaluated": not_evaluated}
    with store.write() as connection:
        attempts.amend_effective(connection, attempt.id, amended)
        facts.add_late_facts(connection, attempt.id, SCOPE, {LATE: pending["why"], **log_facts(found)})
