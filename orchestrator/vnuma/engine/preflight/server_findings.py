"""Findings about a VM's SQL Server: whose it is, who else uses it, and how vnuma connects."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.domain.vm.endpoint import Identity, IdentityComparison, compare
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.domain.vm.surroundings import ServerUse, Surroundings
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.instance.sql_identity import STATED
from vnuma.engine.preflight.findings import Finding, some_of
from vnuma.errors import DriverMissing, EnvironmentProblem, LoginRefused
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance import other_users
from vnuma.sqlserver.instance.endpoint import answers

_BY_ADDRESS = Identity()


def server_use_findings(
    name: str, guest_name: str | None, found: ServerUse, *, test_clone: bool, identity: Identity = _BY_ADDRESS
) -> Iterator[Finding]:
    """Other users of this SQL Server, as it reports them. `guest_name` is the guest's name in
    VMware Tools.
    """
    if found.machine_name and guest_name and _short(found.machine_name) != _short(guest_name):
        yield Finding(
            "P27",
            "warn" if identity.is_stated else "block",
            (
                f"The SQL Server of {name} runs on {found.machine_name}, but the VM's guest is called "
                f"{guest_name}."
            ),
            f"Correct vnuma_sql.host: vnuma would measure another machine. {STATED}",
        )
    if found.replica_databases:
        yield _depended_on("P21", name, "an availability group", found.replica_databases)
    elif found.availability_groups:
        yield Finding.warn(
            "P21", f"Availability groups are enabled on {name}; no database is in one.", "None needed."
        )
    if found.clustered:
        yield Finding.block(
            "P22",
            f"SQL Server on {name} is a failover cluster instance: shutting it down causes a failover.",
            "Study a stand-alone instance.",
        )
    if found.replicated:
        yield _depended_on("P23", name, "replication", found.replicated)
    if found.log_shipped:
        yield _depended_on("P24", name, "log shipping", found.log_shipped)
    if found.backups:
        yield Finding.block(
            "P25", f"Backups run on {name}: {some_of(found.backups)}.", "Wait until they have ended."
        )
    if found.sessions:
        yield Finding(
            "P26",
            "warn" if test_clone else "block",
            f"{len(found.sessions)} other sessions are open on {name}: "
            f"{some_of(tuple(dict.fromkeys(found.sessions)))}.",
            "Close them: each power-cycle ends them, and their work adds noise.",
        )
    if found.not_seen:
        yield Finding.warn(
            "P20",
            f"This login cannot read {', '.join(found.not_seen)} on {name}: not evaluated.",
            "Grant it VIEW SERVER STATE, and for log shipping SELECT on msdb.dbo.log_shipping_%.",
        )


def identity_findings(name: str, where: str, found: IdentityComparison) -> Iterator[Finding]:
    """Whether SQL Server at `where` runs in this VM, as far as the facts show."""
    if found.address == "contradicts":
        yield Finding.block(
            "P31",
            f"{where} is not the SQL Server of {name}: {found.contradictions[0]}.",
            f"Correct vnuma_sql.host. {STATED}",
        )
    if found.uptime == "contradicts":
        yield Finding.block(
            "P32",
            f"{where} is not the SQL Server of {name}: {found.contradictions[-1]}.",
            (
                "Correct vnuma_sql.host: this server started before the VM was powered on, so it does not "
                "run in it."
            ),
        )
    if found.missing and not found.contradictions:
        yield Finding.warn(
            "P33",
            f"Not proven yet that {where} is the SQL Server of {name}: {found.missing}.",
            "A run needs no fix: its first power-cycle proves it, and nothing is written before that.",
        )


def server_findings(target: Target, vm: VmFacts, seen: Surroundings) -> list[Finding]:
    """Ask SQL Server who else uses it; if that fails, one finding says why.

    Raises DriverMissing.
    """
    server = sql_server(target)
    if vm.power is not Power.ON:
        answer = answers(server) if vm.power is Power.OFF else None
        return [
            Finding.block(
                "P32",
                f"{server.where} is not the SQL Server of {vm.name}: the VM is off, and {answer.what}.",
                "Correct vnuma_sql.host.",
            )
            if answer
            else _use_not_evaluated(vm.name, "it is powered off.", "Power it on")
        ]
    try:
        with connect(server) as connection:
            found = other_users.read_use(connection)
    except DriverMissing:  # a fault of this machine, which every cell would meet
        raise
    except LoginRefused as error:  # no cell could log in either, and each attempt counts towards a lock-out
        refused = f"The study could not log in to SQL Server on {vm.name}: {error.what}"
        return [Finding.block("P20", refused, error.fix or "Correct vnuma_sql.user and its password.")]
    except EnvironmentProblem as error:
        return [_use_not_evaluated(vm.name, error.what, error.fix)]
    known_by = target.server.known_by
    findings = server_use_findings(
        vm.name, seen.guest_name, found, test_clone=target.test_clone, identity=known_by
    )
    if seen.running is None or found.side is None:
        return list(findings)
    likeness = compare(seen.running, found.side, known_by)
    return [*findings, *identity_findings(vm.name, server.where, likeness)]


def unencrypted_connection(target: Target) -> Iterator[Finding]:
    """Protection of the connection to SQL Server that the inventory turns off."""
    sql = target.server
    if sql.encrypt == "no":
        yield Finding.warn(
            "P35",
            f"The session with SQL Server on {target.name} is not encrypted (encrypt: no): anyone on "
            "the network path can read and change it, and can get the password by refusing encryption.",
            "Write encrypt: mandatory, and name the CA of its certificate in vnuma_sql.ca_file.",
        )
    elif sql.trust_server_certificate:
        yield Finding.warn(
            "P35",
            f"The certificate of SQL Server on {target.name} is not verified "
            "(trust_server_certificate: true): anyone on the network path can impersonate the server "
            "and get the password.",
            "Name the CA of its certificate in vnuma_sql.ca_file, and remove trust_server_certificate.",
        )


def unused_login(target: Target) -> Iterator[Finding]:
    """A SQL login in the inventory that nobody uses, because Kerberos logs in."""
    sql = target.server
    if sql.kerberos and (sql.user or sql.password):
        given = " and ".join(
            name for name, value in (("user", sql.user), ("password", sql.password)) if value
        )
        yield Finding.warn(
            "P39",
            f"vnuma_sql of {target.name} has {given} and kerberos: true: vnuma logs in by Kerberos and does "
            f"not use {given}.",
            f"Remove {given}; or, to use the SQL login, remove kerberos: true.",
        )


def _use_not_evaluated(name: str, why: str, fix: str | None) -> Finding:
    """Who else uses SQL Server was not evaluated; `fix` makes it possible."""
    remedy = (fix or "Fix this").rstrip(".")
    return Finding.warn(
        "P20",
        f"Other users of SQL Server on {name} were not evaluated: {why}",
        f"{remedy}. Then run the command again, or make sure that nobody else uses this SQL Server.",
    )


def _depended_on(id_: str, name: str, what: str, databases: tuple[str, ...]) -> Finding:
    return Finding.block(
        id_,
        f"Databases on {name} are part of {what}: {some_of(databases)}.",
        "Study a clone on an isolated network, removed from it.",
    )


def _short(name: str) -> str:
    """The NetBIOS name: Windows cuts MachineName after 15 characters, and Tools may append the domain."""
    return name.partition(".")[0].casefold()[:15]
