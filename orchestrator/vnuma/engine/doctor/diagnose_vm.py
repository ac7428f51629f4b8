"""The doctor's look at a VM: certificate, privileges, ticket, whose SQL Server answers, and all clocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from cryptography import x509
from pyVmomi import vim

from vnuma.domain.vm.certificates import common_name
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.role import ELSEWHERE, ROLE, needed_privileges
from vnuma.domain.vm.setting import TYPED
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.preflight.findings import Finding
from vnuma.errors import EnvironmentProblem, VnumaError
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.kerberos import ticket_left_s
from vnuma.sqlserver.instance.endpoint import read_clock
from vnuma.vsphere import surroundings, tls
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.uptime import host_ahead_s, seconds_since
from vnuma.words.plain_text import duration, signed_seconds

State = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True)
class Diagnosis:
    """How a thing stands, what it is about, what was seen, and what helps."""

    state: State
    subject: str
    what: str
    more: tuple[str, ...] = ()

    @classmethod
    def failed(cls, subject: str, error: VnumaError) -> Diagnosis:
        """A check that raised, in the error's own words."""
        return cls("FAIL", subject, error.what, (f"fix: {error.fix}",) if error.fix else ())


_RENEW_WITHIN = timedelta(days=30)


def server(target: Target, session: Session) -> Iterator[Diagnosis]:
    """Who answered, whether its certificate was verified, and a certificate that will not be for long."""
    shown = tls.shown(session.transport.vcenter)
    ends = f", until {shown.not_valid_after_utc:%Y-%m-%d}" if shown else ""
    verified = target.hypervisor.verify_tls
    yield Diagnosis(
        "ok" if verified else "warn",
        "vCenter" if session.about.is_vcenter else "ESXi",
        f"{target.hypervisor.host} {session.about.name}, certificate "
        + (f"valid{ends}" if verified else "NOT verified, as configured"),
    )
    if shown:
        yield from _expiry(target.hypervisor.host, shown, datetime.now(UTC))


def _expiry(host: str, shown: x509.Certificate, now: datetime) -> Iterator[Diagnosis]:
    """An expired certificate is met here only where its check is turned off: else nobody got in."""
    expires = shown.not_valid_after_utc
    left = expires - now
    name = f"{common_name(shown.subject)} (issuer {common_name(shown.issuer)}) of {host}"
    if left < timedelta():
        words = f"{name} expired on {expires:%Y-%m-%d}"
        yield Diagnosis("FAIL", "certificate", words, ("fix: renew it, then turn verify_tls on again",))
    elif left < _RENEW_WITHIN:
        words = f"{name} expires on {expires:%Y-%m-%d}, in {left.days} days"
        more = ("after that no run can connect, and no VM can be restored", "fix: renew it before a study")
        yield Diagnosis("warn", "certificate", words, more)


def needed(session: Session, ref: VmRef, facts: VmFacts) -> Iterator[Diagnosis]:
    """One line for each privilege that is missing; a study of some settings only may do without it."""
    wanted = needed_privileges(TYPED)
    missing = surroundings.missing_privileges(session, ref, wanted)
    for name in missing:
        more = (f"needed for: {ROLE[name]}", "fix: ansible-playbook vnuma.vnuma.vcenter_role")
        yield Diagnosis("FAIL", "privilege", f"{name} missing on {facts.name}", more)
    if not missing:
        yield Diagnosis("ok", "privilege", f"all {len(wanted)} that a study needs")


def optional(session: Session, ref: VmRef) -> Iterator[Diagnosis]:
    """One line for each privilege that a study can do without, and what does not work then."""
    places = surroundings.places_of(session, ref)
    asked = [need for need in ELSEWHERE if places.get(need.where)]
    missing = 0
    for need in asked:
        for place, name in places[need.where].items():
            if surroundings.missing_privileges(session, place, [need.privilege]):
                missing += 1
                words = f"{need.privilege} missing on {name}; without it {need.without}"
                yield Diagnosis("warn", "optional", words, (f"it is for: {need.purpose}",))
    if not missing:
        yield Diagnosis("ok", "optional", f"all {len(asked)} optional privileges")


_NIGHT_S = 12 * 3600.0
"""How long the logins of a run overnight must work."""


def tickets(targets: Iterable[Target]) -> Iterator[Diagnosis]:
    """How long Kerberos logins will work, where one of these targets has them."""
    if not any(target.server.kerberos for target in targets):
        return
    if named := os.environ.get("KRB5_CLIENT_KTNAME"):
        yield Diagnosis("ok", "ticket", f"by the keytab {named} (KRB5_CLIENT_KTNAME)")
        return
    left, more = ticket_left_s(), ("fix: kinit USER@REALM; for runs overnight a keytab: docs/sign-in.md",)
    if left is None or left <= 0:
        yield Diagnosis("warn", "ticket", "klist shows no valid one", more)
    elif left < _NIGHT_S:
        words = f"it lasts {duration(left)}: later no run can log in to SQL Server"
        yield Diagnosis("warn", "ticket", words, more)
    else:
        yield Diagnosis("ok", "ticket", f"it lasts {duration(left)}")


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
        yield Diagnosis("ok", "clocks", f"against {target.hypervisor.host}: {told}")
        return
    more = ("runs do not depend on it; certificates, Kerberos and times in logs do", "fix: set up NTP")
    yield Diagnosis("warn", "clocks", f"against {target.hypervisor.host}: {told}", more)


def _guest_ahead_s(target: Target, session: Session) -> float | None:
    if target.sql is None:
        return None
    try:
        with connect(sql_server(target)) as connection:
            clock = read_clock(connection)
    except EnvironmentProblem:
        return None
    return -seconds_since(session, clock)
