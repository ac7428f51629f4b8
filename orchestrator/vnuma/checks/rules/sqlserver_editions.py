"""Rules on what SQL Server's editions leave unused."""

from __future__ import annotations

from vnuma.checks.facts import Facts
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules.sources import EDITIONS, EDITIONS_2025
from vnuma.checks.rules.windows import fewer_sockets
from vnuma.domain.topology.licence import UNLIMITED, SqlLimit, sql_limit, usable_by_sql
from vnuma.domain.topology.topology import Topology

_SEEN = {"S04": "Offline schedulers were observed, so this is no longer a prediction: see S04."}


def _limit(facts: Facts) -> SqlLimit:
    return sql_limit(facts.edition.edition, facts.edition.major)


def _unused(facts: Facts, limit: SqlLimit) -> Fail | None:
    """CPUs that the edition would leave unused, unless SQL Server reports that it uses them all."""
    shape = Topology(facts.sockets, facts.per_socket)
    usable = usable_by_sql(limit, shape)
    if usable.cores >= shape.vcpus:
        return None
    sql = None if facts.studied else facts.subject.sql  # it licenses the running shape, not an arm
    licensed = sql.licensed_cpus if sql else None
    if licensed is not None and licensed >= facts.vcpus:
        return None
    otherwise = f", or {usable.otherwise}" if usable.otherwise else ""
    return Fail(
        {
            "edition": facts.edition.edition,
            "shape": str(shape),
            "cores used": f"predicted {usable.cores}{otherwise} of {shape.vcpus} ({usable.confidence})",
        },
        _whole(facts, limit) if limit.sockets < UNLIMITED else None,
    )


def _whole(facts: Facts, limit: SqlLimit) -> Fix:
    """A shape that the edition can use: the same vCPUs in fewer sockets, or only as many vCPUs."""
    if facts.vcpus <= limit.cores:
        return fewer_sockets(facts, limit.sockets)
    return Fix(f"Use at most {limit.cores} vCPUs, or an edition that uses more (Developer on a test clone).")


@rule(
    "S01",
    Severity.WARN,
    "Standard edition may leave CPUs unused",
    condition="Standard edition with more than 4 sockets, or more than 24 cores (before 2016: 16; 2025: 32)",
    consequence=(
        "Standard uses at most 4 sockets or that many cores, whichever is less: taken literally, 8x2 "
        "runs on 8 cores and 16x1 on 4. Microsoft says that sockets do not count in a VM; reports "
        "from VMware guests say they do."
    ),
    fix="Use at most 4 sockets, and no more vCPUs than the edition uses, or Enterprise edition (Developer on "
    "a test clone).",
    sources=(
        EDITIONS,
        EDITIONS_2025,
        "https://www.adscon.com/blogs/news/are-cpus-assigned-to-your-sql-server-going-to-waste",
    ),
    reads="vm edition",
    editions="SQL Server Standard",
    yields_to=_SEEN,
    related=("S04", "W04"),
)
def s01(facts: Facts) -> Fail | None:
    limit = _limit(facts)
    return _unused(facts, limit) if limit.edition == "Standard" else None


@rule(
    "S02",
    Severity.BLOCK,
    "Express or Web edition leaves CPUs unused",
    condition=(
        "Express with more than 1 socket or 4 cores; Web with more than 4 sockets or 16 cores. A "
        "warning for Web, and for Express with at most 4 vCPUs in several sockets"
    ),
    consequence=(
        "If sockets count, as error logs of VMware guests show, Express uses 4, 4, 4, 2 and 1 cores "
        "of 16 vCPUs as 1x16 to 16x1: arms differ by edition, not by NUMA. According to Microsoft's "
        "text sockets do not count in a VM: always 4 cores."
    ),
    fix="Use another edition (Developer on a test clone); or for Express one socket of up to 4 cores, for "
    "Web at most 4 sockets and 16 cores.",
    sources=(EDITIONS,),
    reads="vm edition",
    editions="SQL Server Express, Web",
    yields_to=_SEEN,
    related=("S04",),
)
def s02(facts: Facts) -> Fail | None:
    limit = _limit(facts)
    if limit.edition not in {"Express", "Web"}:
        return None
    found = _unused(facts, limit)
    if found is None or (limit.confidence == "high" and facts.vcpus > limit.cores):
        return found
    return Fail(found.observed, found.fix, severity=Severity.WARN)


@rule(
    "S03",
    Severity.WARN,
    "Enterprise under Server+CAL uses 20 cores",
    condition="Enterprise edition without core licensing has more than 20 vCPUs",
    consequence="SQL Server uses 20 cores at most.",
    fix="License by core, or use at most 20 vCPUs.",
    sources=(EDITIONS,),
    reads="vm edition",
    editions="SQL Server Enterprise (Server+CAL)",
    yields_to=_SEEN,
    related=("S04",),
)
def s03(facts: Facts) -> Fail | None:
    limit = _limit(facts)
    return _unused(facts, limit) if limit.edition.endswith("(Server+CAL)") else None


@rule(
    "S04",
    Severity.BLOCK,
    "Schedulers are offline",
    condition="sys.dm_os_schedulers shows VISIBLE OFFLINE, or the error log says that SQL Server uses fewer "
    "logical processors than there are",
    consequence=(
        "SQL Server leaves CPUs of this VM unused because of its edition's limit or its affinity; "
        "arms of a study then differ in CPUs."
    ),
    fix="Fewer, larger sockets (S01), another edition, or affinity AUTO (S13).",
    sources=(
        "https://github.com/BrentOzarULTD/SQL-Server-First-Responder-Kit/issues/403",
        "https://github.com/BrentOzarULTD/SQL-Server-First-Responder-Kit/issues/402",
    ),
    reads="vm sql",
    related=("S01", "S02", "S03", "S13"),
)
def s04(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    seen, licensed = facts.sql.topology, facts.sql.licensed_cpus
    if not seen.visible_offline and (licensed is None or licensed >= facts.vcpus):
        return None
    limit = _limit(facts)
    fix = (
        fewer_sockets(facts, limit.sockets)
        if facts.sockets > limit.sockets and facts.vcpus <= limit.cores
        else None
    )
    return Fail(
        {
            "edition": facts.sql.server.edition,
            "shape": f"{facts.sockets}x{facts.per_socket}",
            "schedulers online": f"{seen.visible_online} of {seen.visible_online + seen.visible_offline}",
            "error log": "not read" if licensed is None else f"using {licensed} logical processors",
        },
        fix,
        matters="Observed, not predicted.",
    )
