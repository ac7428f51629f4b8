"""Rules on SQL Server's editions, schedulers, NUMA nodes and parallelism."""

from __future__ import annotations

from vnuma.checks.facts import Facts, Unknown, known
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules.shape_questions import NO_HOT_ADD
from vnuma.checks.rules.sources import EDITIONS, MAXDOP, MEMORY_NODES, NODE_OF_64, SOFT_NUMA, SYS_INFO
from vnuma.domain.topology.licence import MOST_IN_A_NODE, SQL_2016, SQL_2022_CU11

# A node's memory on other nodes, as a share of all committed memory.
LARGE_FOREIGN = 0.05


@rule(
    "S05",
    Severity.INFO,
    "Automatic soft-NUMA splits large nodes",
    condition="automatic soft-NUMA is in effect; passes if every arm of the study sets soft_numa",
    consequence=(
        "Nodes or sockets with more than 8 cores are split into soft nodes of 5 to 9, so SQL "
        "Server's CPU nodes are not the VM's nodes (1x16 shows 2)."
    ),
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
    condition=(
        "the number of SQL Server's memory nodes (without the DAC's) differs from what ESXi's rules "
        "give this configuration; a warning if the rules allow several numbers"
    ),
    consequence=(
        "The configured topology is not in effect: sizing, or an arm, counts nodes that do not exist."
    ),
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
    consequence=(
        "SQL Server allocated memory on nodes other than the one that uses it: remote from the start."
    ),
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
    condition=(
        "max degree of parallelism is 0, or above Microsoft's guidance: with one node its logical "
        "CPUs, at most 8; with several the logical CPUs of a node, at most 16, or half of them (at "
        "most 16) if a node has more than 16 (SQL Server up to 2014: always at most 8); passes if "
        "the study sets its own"
    ),
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
    consequence=(
        "SQL Server does not start, according to the notes on CU11: an arm of this shape can never be "
        "measured."
    ),
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
