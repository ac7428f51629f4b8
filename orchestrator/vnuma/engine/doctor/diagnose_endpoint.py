"""The doctor's look at whose SQL Server answers, and at the clocks of all who take part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pyVmomi import vim

from vnuma.domain.vm.plain_text import signed_seconds
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.doctor.diagnosis import Diagnosis
from vnuma.engine.preflight.findings import Finding
from vnuma.errors import EnvironmentProblem
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance.endpoint import read_clock
from vnuma.vsphere.session import Session
from vnuma.vsphere.uptime import host_ahead_s, seconds_since

_FAR_S = 60.0
_IDENTITY = frozenset({"P20", "P27", "P31", "P32", "P33"})


def identity(findings: Sequence[Finding]) -> Iterator[Diagnosis]:
    """That the facts agree; what contradicts or is not known is a finding of its own."""
    if not any(finding.id in _IDENTITY for finding in findings):
        what = "its address is the guest's, and it started after the VM's power-on"
        yield Diagnosis("ok", "whose SQL", f"{what}; a run's first power-cycle proves it")


def clocks(target: Target, session: Session, host: vim.HostSystem) -> Iterator[Diagnosis]:
    """How far each clock is from vCenter's. No time of one is compared with another's, whatever is found."""
    ahead = {"host": host_ahead_s(session, host), "guest": _guest_ahead_s(target, session)}
    ahead["this machine"] = -seconds_since(session, datetime.now(UTC))
    told = ", ".join(
        f"{name} {'not known' if seconds is None else signed_seconds(seconds)}"
        for name, seconds in ahead.items()
    )
    far = [name for name, seconds in ahead.items() if seconds is not None and abs(seconds) > _FAR_S]
    if not far:
        yield Diagnosis("ok", "clocks", f"against {target.vcenter.host}: {told}")
        return
    more = ("runs do not depend on it; certificates, Kerberos and times in logs do", "fix: set up NTP")
    yield Diagnosis("warn", "clocks", f"against {target.vcenter.host}: {told}", more)


def _guest_ahead_s(target: Target, session: Session) -> float | None:
    try:
        with connect(sql_server(target)) as connection:
            clock = read_clock(connection)
    except EnvironmentProblem:
        return None
    return -seconds_since(session, clock)
