"""Rules on SQL Server's editions, schedulers, NUMA nodes and parallelism."""

from __future__ import annotations

import re

from vnuma.checks.facts import Facts, Unknown, known
from vnuma.checks.rule import Fail, Fix, Severity, rule
from vnuma.checks.rules.shape_questions import NO_HOT_ADD
from vnuma.checks.rules.sources import (
    EDITIONS,
    EDITIONS_2025,
    MAXDOP,
    MEMORY_LIMITS,
    MEMORY_NODES,
    NODE_OF_64,
    SOFT_NUMA,
    SYS_INFO,
    TRACE_FLAGS,
)
from vnuma.checks.rules.windows import fewer_sockets
from vnuma.domain.topology.licence import (
    MOST_IN_A_NODE,
    SQL_2016,
    SQL_2022_CU11,
    UNLIMITED,
    SqlLimit,
    has_resource_governor,
    sql_limit,
    usable_by_sql,
)
from vnuma.domain.topology.topology import Topology
from vnuma.words.plain_text import gigabytes

# A node's memory on other nodes, as a share of all committed memory.
LARGE_FOREIGN = 0.05


@rule(
    "S05",
    Severity.INFO,
    "Automatic soft-NUMA splits large nodes",
    condition="automatic soft-NUMA is in effect; passes if every arm of the study sets soft_numa",
    consequence="Nodes or sockets with more than 8 cores are split into soft nodes of 5 to 9, so SQL "
    "Server's CPU nodes are not the VM's nodes (1x16 shows 2).",
    fix="Leave it on for normal use. In a study, hold it constant or make it a factor: SOFTNUMA OFF and a "
    "restart.",
    sources=(SOFT_NUMA,),
    reads="sql",
    in_study=Severity.WARN,
    related=("S07", "S17"),
)
def s05(facts: Facts) -> Fail | None:
    study = facts.subject.study
    if study and all(study.study.arm(label).soft_numa != "keep" for label in study.arms):
        return None
    state = known(facts.sql.topology.soft_numa, "softnuma_configuration (2016 and later have it)")
    if state.upper() != "ON":
        return None
    return Fail(
        {
            "softnuma_configuration": "1 (automatic)",
            "SQL CPU nodes": str(facts.sql.topology.sql_cpu_nodes),
            "memory nodes": str(facts.sql.topology.numa_nodes),
        },
        Fix(
            "In a study, turn it off in every arm; otherwise leave it on.",
            arm={"soft_numa": "off"},
            commands="ALTER SERVER CONFIGURATION SET SOFTNUMA OFF; -- then restart SQL Server",
        ),
    )


@rule(
    "S06",
    Severity.BLOCK,
    "The guest does not have the nodes it should",
    condition="the number of SQL Server's memory nodes (without the DAC's) differs from what ESXi's rules "
    "give this configuration; a warning if the rules allow several numbers",
    consequence="The configured topology is not in effect: sizing, or an arm, counts nodes that do not "
    "exist.",
    fix="Power-cycle the VM once; if it persists, remove the stored numa.autosize keys (T14).",
    sources=(MEMORY_NODES,),
    reads="vm host sql",
    yields_to={
        "T24": "The guest is still on an older topology: fix T24 first.",
        "S11": "SQL Server is set to ignore NUMA: fix S11 first.",
    },
    related=("T04", "T11", "T14", "T24"),
)
def s06(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    seen, expected = facts.sql.topology.numa_nodes, facts.prediction
    if seen in expected.acceptable:
        return None
    return Fail(
        {
            "nodes expected": " or ".join(map(str, expected.acceptable)) + f" ({expected.because})",
            "nodes in SQL Server": str(seen),
            "numa.autosize.cookie": facts.key("numa.autosize.cookie") or "not set",
        },
        Fix(
            "Power the VM off, remove the stored numa.autosize keys, power it on.",
            arm={"numa_autosize": "clear"},
            settings={"numa.autosize.cookie": None, "numa.autosize.vcpu.maxPerVirtualNode": None},
        ),
        severity=None if expected.confidence == "high" else Severity.WARN,
    )


@rule(
    "S07",
    Severity.INFO,
    "numa_node_count includes soft nodes",
    condition="sys.dm_os_sys_info.numa_node_count differs from the number of memory nodes",
    consequence="Its value is not the number of hardware nodes.",
    fix="Count memory nodes: DISTINCT memory_node_id in sys.dm_os_nodes without the DAC's.",
    sources=(SYS_INFO,),
    reads="sql",
    related=("S05",),
)
def s07(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    count = known(facts.sql.server.numa_node_count, "numa_node_count (2016 SP2 and later have it)")
    nodes = facts.sql.topology.numa_nodes
    return None if count == nodes else Fail({"numa_node_count": str(count), "memory nodes": str(nodes)})


@rule(
    "S08",
    Severity.WARN,
    "Nodes use memory of other nodes",
    condition="foreign_committed_kb is more than 5% of what SQL Server has committed",
    consequence="SQL Server allocated memory on nodes other than the one that uses it: remote from the "
    "start.",
    fix="Restart SQL Server after the boot, and check the free memory of each node.",
    sources=(MEMORY_NODES,),
    reads="sql",
    related=("M05",),
)
def s08(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    server = facts.sql.server
    foreign = sum(server.foreign_committed_kb.values())
    if not server.committed_kb or foreign <= LARGE_FOREIGN * server.committed_kb:
        return None
    return Fail({"foreign": f"{foreign // 1024:,} MB", "committed": f"{server.committed_kb // 1024:,} MB"})


def maxdop_guidance(nodes: int, vcpus: int, major: int) -> int:
    """The highest MAXDOP in Microsoft's guidance for that many SQL nodes and logical CPUs.

    `major` is 12 for 2014, 13 for 2016; up to 2014 the limit is 8 for any number of nodes.
    """
    per_node = max(1, vcpus // nodes)
    if nodes == 1 or major < SQL_2016:
        return min(8, per_node)
    return per_node if per_node <= 16 else min(16, per_node // 2)


@rule(
    "S09",
    Severity.WARN,
    "MAXDOP is outside the guidance for these nodes",
    condition="max degree of parallelism is 0, or above Microsoft's guidance: with one node its logical "
    "CPUs, at most 8; with several the logical CPUs of a node, at most 16, or half of them (at most 16) if "
    "a node has more than 16 (SQL Server up to 2014: always at most 8); passes if the study sets its own",
    consequence="A plan may use more CPUs than a node has, and its degree differs between arms.",
    fix="Set one MAXDOP for all arms (1 for a study of locality); otherwise follow the guidance.",
    sources=(MAXDOP,),
    reads="sql",
    related=("S05", "S19"),
)
def s09(facts: Facts) -> Fail | None:
    study = facts.subject.study
    if study and all(study.study.workload_of(label).maxdop_hint for label in study.arms):
        return None
    facts.require_running_shape()
    degree = known(facts.sql.server.max_dop, "max degree of parallelism")
    nodes = max(1, facts.sql.topology.sql_cpu_nodes)
    most = maxdop_guidance(nodes, facts.sql.topology.vcpus, facts.sql.server.major)
    if 0 < degree <= most:
        return None
    return Fail(
        {
            "max degree of parallelism": str(degree),
            "SQL CPU nodes": str(nodes),
            "guidance": f"at most {most}",
        },
        Fix(
            f"Set it to {most}.",
            commands=f"EXEC sp_configure 'max degree of parallelism', {most};\nRECONFIGURE;",
        ),
    )


@rule(
    "S13",
    Severity.WARN,
    "SQL Server is bound to some CPUs",
    condition="affinity_type is not AUTO",
    consequence="SQL Server's nodes contain only the CPUs that it is bound to.",
    fix="Set process affinity to AUTO.",
    sources=(SYS_INFO,),
    reads="sql",
    related=("S04",),
)
def s13(facts: Facts) -> Fail | None:
    kind = known(facts.sql.server.affinity, "affinity_type")
    if kind.upper() == "AUTO":
        return None
    return Fail(
        {"affinity_type": kind},
        Fix("Set it to AUTO.", commands="ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = AUTO;"),
    )


@rule(
    "S17",
    Severity.WARN,
    "CPU hot-add with soft-NUMA",
    condition="CPU hot-add is on and automatic soft-NUMA is in effect",
    consequence="SQL Server does not support this combination.",
    fix="Turn CPU hot-add off.",
    sources=(SOFT_NUMA,),
    reads="vm sql",
    yields_to={"T11": "Turning CPU hot-add off fixes both: fix T11 first."},
    related=("T11", "T12"),
)
def s17(facts: Facts) -> Fail | None:
    state = known(facts.sql.topology.soft_numa, "softnuma_configuration (2016 and later have it)")
    if not facts.on("cpuHotAddEnabled") or state.upper() != "ON":
        return None
    return Fail(
        {"cpuHotAddEnabled": "true", "softnuma_configuration": "1 (automatic)"},
        NO_HOT_ADD,
    )


@rule(
    "S22",
    Severity.WARN,
    "More than 64 logical processors in a node",
    condition="a node is predicted to have more than 64 vCPUs; SQL Server is 2022 CU11 (16.0.4105) or later",
    consequence="SQL Server does not start, according to the notes on CU11: an arm of this shape can never "
    "be measured.",
    fix="Use more nodes with at most 64 vCPUs each: more sockets, or cores per NUMA node.",
    sources=(NODE_OF_64, EDITIONS),
    reads="vm host edition",
    related=("S05", "S06"),
)
def s22(facts: Facts) -> Fail | None:
    planned = facts.edition
    if (_build(planned.version) if planned.version else (planned.major, 99)) < SQL_2022_CU11:
        return None
    largest = max(facts.prediction.node_sizes, default=facts.vcpus)
    if largest <= MOST_IN_A_NODE:
        return None
    release = planned.version or f"{planned.major}.0 with its updates"
    return Fail({"vCPUs in a node": str(largest), "SQL Server": release})


def _build(version: str) -> tuple[int, ...]:
    """The version's numbers, for comparing. Raises Unknown if invalid."""
    parts = version.split(".")
    if not all(part.isdecimal() and len(part) <= 9 for part in parts):
        raise Unknown(f"the version does not start with a number: {version}")
    return tuple(map(int, parts))


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
    consequence="Large pages are allocated at startup: if max server memory is far below the RAM, nodes are "
    "filled unevenly or stay empty.",
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
    condition="a database with memory-optimised tables is not bound to a resource pool, or its pool's MIN "
    "and MAX memory percent differ",
    consequence="It may run out of memory, or put others under pressure: 70 to 90% of the target memory is "
    "usable.",
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
    condition="SQL Server has several CPU nodes, no TCP port is mapped to a single one of them, and "
    "connections were seen on several",
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
    consequence="The buffer pool stops at the limit; from 2016 SP1 on, memory-optimised data stops at 32 GB "
    "per database in Standard, 16 GB in Web and 352 MB in Express.",
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


_SEEN = {"S04": "Offline schedulers were observed, so this is no longer a prediction: see S04."}


def _limit(facts: Facts) -> SqlLimit:
    return sql_limit(facts.edition.edition, facts.edition.major)


def _unused(facts: Facts, limit: SqlLimit) -> Fail | None:
    """CPUs that the edition would leave unused, unless SQL Server reports that it uses them all."""
    sockets = _sockets(facts, limit)
    shape = Topology(sockets, facts.per_socket) if sockets else Topology(1, facts.vcpus)
    usable = usable_by_sql(limit, shape)
    if usable.cores >= shape.vcpus:
        return None
    sql = None if facts.studied else facts.subject.sql  # it licenses the running shape, not an arm
    licensed = sql.licensed_cpus if sql else None
    if licensed is not None and licensed >= facts.vcpus:
        return None
    otherwise = f", or {usable.otherwise}" if usable.otherwise else ""
    most = "" if sockets else "at most "
    return Fail(
        {
            "edition": facts.edition.edition,
            "shape": str(shape) if sockets else f"{facts.vcpus} vCPUs",
            "cores used": f"predicted {most}{usable.cores}{otherwise} of {shape.vcpus} ({usable.confidence})",
        },
        _whole(facts, limit) if limit.sockets < UNLIMITED else None,
    )


def _sockets(facts: Facts, limit: SqlLimit) -> int | None:
    """Its sockets; None: unknown, but it has more vCPUs than the edition uses in any number of them."""
    facts.require_whole_sockets()
    try:
        return facts.sockets
    except Unknown:
        if facts.vcpus <= limit.cores:
            raise
        return None


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
    consequence="Standard uses at most 4 sockets or that many cores, whichever is less: taken literally, "
    "8x2 runs on 8 cores and 16x1 on 4. Microsoft says that sockets do not count in a VM; reports from "
    "VMware guests say they do.",
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
    condition="Express with more than 1 socket or 4 cores; Web with more than 4 sockets or 16 cores. A "
    "warning for Web, and for Express with at most 4 vCPUs in several sockets",
    consequence="If sockets count, as error logs of VMware guests show, Express uses 4, 4, 4, 2 and 1 cores "
    "of 16 vCPUs as 1x16 to 16x1: arms differ by edition, not by NUMA. According to Microsoft's text "
    "sockets do not count in a VM: always 4 cores.",
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
    consequence="SQL Server leaves CPUs of this VM unused because of its edition's limit or its affinity; "
    "arms of a study then differ in CPUs.",
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
