"""Evidence about a boot besides the guest's own view, so that three sources can be compared.

Missing evidence never fails a cell: the reason is recorded instead.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from vnuma.domain.study.study import Evidence
from vnuma.domain.topology.evidence import LogEvidence, evidence_of_boot
from vnuma.domain.vm.facts import GuestTopology, VmFacts
from vnuma.errors import PrivilegeMissing, SqlFailed
from vnuma.logs.errorlog import ErrorLog
from vnuma.logs.vmware import VmwareLog, read_vmware_log
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance.server import read_start
from vnuma.store import facts
from vnuma.store.open import Store
from vnuma.vsphere.connect import Session
from vnuma.vsphere.log_file import LogFile, LogUnavailable, fetch_log

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
    earlier = store.ask(lambda conn: facts.last_value(conn, vm_id, SCOPE, "began", not_of=attempt_id))
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
    log = evidence.log
    return {
        "source": evidence.source,
        "not_evaluated": evidence.why_not,
        **({} if log is None else _figures(log)),
    }


def start_document(start: ErrorLog | None) -> dict[str, object] | None:
    """The error log's content, for the attempt's effective topology."""
    return None if start is None else asdict(start)


def _figures(log: VmwareLog) -> dict[str, object]:
    return {
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
