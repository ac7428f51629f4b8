"""Rules on SQL Server's settings: trace flags, memory, memory-optimised data, ports, plan feedback."""

from __future__ import annotations

import re

from vnuma.checks.facts import Facts, Unknown, known
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules.shape_questions import gigabytes
from vnuma.checks.rules.sources import EDITIONS, EDITIONS_2025, MAXDOP, MEMORY_LIMITS, TRACE_FLAGS
from vnuma.domain.topology.licence import has_resource_governor, sql_limit

UNSET_MEMORY_MB = 2_147_483_647
# Memory for Windows: a tenth, at least 1 GB, before the fix's rounding.
WINDOWS_SHARE, WINDOWS_MINIMUM_MB = 10, 1024

_XTP_POOL = (
    "https://learn.microsoft.com/sql/relational-databases/in-memory-oltp/"
    "bind-a-database-with-memory-optimized-tables-to-a-resource-pool"
)


def _flag(facts: Facts, number: int) -> bool:
    return number in known(facts.sql.server.trace_flags, "trace flags (DBCC TRACESTATUS)")


def _without(number: int) -> Fix:
    # DBCC TRACEOFF would only hide it: these flags take effect when SQL Server starts.
    return Fix(f"Remove -T{number} from the startup parameters and restart SQL Server.")


@rule(
    "S10",
    Severity.WARN,
    "Trace flag 834 changes where memory comes from",
    condition="trace flag 834 is on",
    consequence=(
        "Large pages are allocated at startup: if max server memory is far below the RAM, nodes are "
        "filled unevenly or stay empty."
    ),
    fix="Keep it the same in all arms, and raise max server memory.",
    sources=(TRACE_FLAGS,),
    reads="sql",
    editions="SQL Server Enterprise with locked pages",
)
def s10(facts: Facts) -> Fail | None:
    return Fail({"trace flags": "834"}, _without(834)) if _flag(facts, 834) else None


@rule(
    "S11",
    Severity.BLOCK,
    "Trace flag 8015 makes SQL Server ignore NUMA",
    condition="trace flag 8015 is on",
    consequence="SQL Server shows and uses one node: arms cannot be distinguished.",
    fix="Remove it, or use it on purpose as a control arm.",
    sources=("https://support.microsoft.com/kb/948450", TRACE_FLAGS),
    reads="sql",
    related=("S06",),
)
def s11(facts: Facts) -> Fail | None:
    return Fail({"trace flags": "8015"}, _without(8015)) if _flag(facts, 8015) else None


@rule(
    "S12",
    Severity.INFO,
    "Trace flag 8048 has no effect",
    condition="trace flag 8048 is on, SQL Server 2014 SP2 or later",
    consequence="The engine does this automatically.",
    fix="Remove it at the next maintenance.",
    sources=(
        "https://learn.microsoft.com/sql/relational-databases/memory-management-architecture-guide",
        TRACE_FLAGS,
    ),
    reads="sql",
)
def s12(facts: Facts) -> Fail | None:
    version = [int(part) for part in re.findall(r"\d+", facts.sql.server.version)[:3]]
    if not _flag(facts, 8048) or version < [12, 0, 5000]:
        return None
    return Fail({"trace flags": "8048", "version": facts.sql.server.version}, _without(8048))


@rule(
    "S14",
    Severity.WARN,
    "max server memory is not set",
    condition="max server memory is not set, or leaves Windows less than a tenth of the RAM (at least 1 GB)",
    consequence="SQL Server may take memory that Windows needs, which causes paging.",
    fix="Set it to the RAM minus what the system needs; use the same value in every arm of a study.",
    sources=(
        "https://learn.microsoft.com/sql/database-engine/configure-windows/server-memory-server-configuration-options",
    ),
    reads="sql",
    unconfirmed=True,
    related=("M03", "S20"),
)
def s14(facts: Facts) -> Fail | None:
    most = known(facts.sql.server.max_server_memory_mb, "max server memory")
    ram = facts.sql.server.physical_memory_kb // 1024
    room = ram - max(ram // WINDOWS_SHARE, WINDOWS_MINIMUM_MB)
    if most <= room:
        return None
    return Fail(
        {
            "max server memory": "not set" if most >= UNSET_MEMORY_MB else f"{most:,} MB",
            "RAM": gigabytes(ram),
        },
        Fix(
            f"Set it to {room} MB.",
            commands=f"EXEC sp_configure 'max server memory (MB)', {room};\nRECONFIGURE;",
        ),
    )


@rule(
    "S15",
    Severity.WARN,
    "Memory-optimised data without a pool of its own",
    condition=(
        "a database with memory-optimised tables is not bound to a resource pool, or its pool's MIN "
        "and MAX memory percent differ"
    ),
    consequence=(
        "It may run out of memory, or put others under pressure: 70 to 90% of the target memory is usable."
    ),
    fix="Bind it to a pool with MIN = MAX, then take the database offline and online.",
    sources=(_XTP_POOL, EDITIONS_2025),
    reads="sql",
    editions="SQL Server with Resource Governor: Enterprise, Developer, Evaluation; from 2025 on Standard",
)
def s15(facts: Facts) -> Fail | None:
    if not has_resource_governor(facts.sql.server.edition, facts.sql.server.major):
        return None
    databases = facts.sql_known("xtp_databases", "databases with memory-optimised tables")
    wrong = [one for one in databases if one.pool is None or one.min_memory_percent != one.max_memory_percent]
    if not wrong:
        return None
    return Fail(
        {
            one.name: "no pool"
            if one.pool is None
            else f"{one.pool}: {one.min_memory_percent} to {one.max_memory_percent}%"
            for one in wrong
        },
        Fix(
            "Bind the database to a pool with equal limits.",
            commands=f"EXEC sp_xtp_bind_db_resource_pool N'{wrong[0].name}', N'{wrong[0].pool or 'POOL'}';",
        ),
    )


@rule(
    "S18",
    Severity.WARN,
    "Connections land on any node",
    condition=(
        "SQL Server has several CPU nodes, no TCP port is mapped to a single one of them, and "
        "connections were seen on several"
    ),
    consequence="A query may run on a different node with each connection.",
    fix="Map a separate port to a node (1433,50001[0x1]), or record the node of every run.",
    sources=(
        "https://learn.microsoft.com/sql/database-engine/configure-windows/"
        "map-tcp-ip-ports-to-numa-nodes-sql-server",
    ),
    reads="sql",
)
def s18(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    sql = facts.sql
    if sql.topology.sql_cpu_nodes <= 1:
        return None
    if any(
        int(mask, 16).bit_count() == 1 for mask in re.findall(r"\[(0x[0-9a-fA-F]+)\]", sql.tcp_ports or "")
    ):
        return None
    if len(set(sql.connection_nodes or ())) < 2:
        raise Unknown(
            "no TCP port is mapped to one node, and no connections on several nodes were seen"
            if sql.tcp_ports
            else "the TCP port setting was not read, and no connections on several nodes were seen"
        )
    return Fail(
        {
            "SQL CPU nodes": str(sql.topology.sql_cpu_nodes),
            "TCP ports": sql.tcp_ports or "not read",
            "nodes of connections": ",".join(map(str, sql.connection_nodes or ())) or "not read",
        }
    )


@rule(
    "S19",
    Severity.INFO,
    "The degree of parallelism may change by itself",
    condition="SQL Server 2022 or later with DOP feedback on",
    consequence="The same query may run with a different degree from one execution to the next.",
    fix="Turn DOP feedback off for the study's database.",
    sources=(MAXDOP,),
    reads="sql",
    related=("S09",),
)
def s19(facts: Facts) -> Fail | None:
    if facts.sql.server.major < 16 or not facts.sql_known("dop_feedback", "DOP feedback"):
        return None
    return Fail(
        {"version": facts.sql.server.version, "DOP feedback": "on"},
        Fix("Turn it off.", commands="ALTER DATABASE SCOPED CONFIGURATION SET DOP_FEEDBACK = OFF;"),
    )


@rule(
    "S20",
    Severity.WARN,
    "The edition uses only part of the memory",
    condition="max server memory (of a design: the VM's memory) above the edition's buffer pool limit "
    "(Standard 64 GB in 2012, 128 GB from 2014 on, 256 GB in 2025; Web 64 GB; Express 1410 MB, before 2016 "
    "1 GB)",
    consequence=(
        "The buffer pool stops at the limit; from 2016 SP1 on, memory-optimised data stops at 32 GB "
        "per database in Standard, 16 GB in Web and 352 MB in Express."
    ),
    fix="Size the VM and the data for the limit, or use Enterprise (Developer on a test clone).",
    sources=(EDITIONS_2025, EDITIONS, MEMORY_LIMITS),
    reads="vm edition",
    editions="SQL Server Standard, Web, Express",
    unconfirmed=True,
    related=("S14",),
)
def s20(facts: Facts) -> Fail | None:
    edition, sql = facts.edition, facts.subject.sql
    limit = sql_limit(edition.edition, edition.major)
    if limit.buffer_pool_mb is None:
        return None
    used = facts.memory_mb
    if sql:
        most = known(sql.server.max_server_memory_mb, "max server memory")
        used = min(most, sql.server.physical_memory_kb // 1024)
    if used <= limit.buffer_pool_mb:
        return None
    return Fail(
        {
            "edition": edition.edition,
            "memory for SQL Server": gigabytes(used),
            "buffer pool limit": gigabytes(limit.buffer_pool_mb),
        }
    )
