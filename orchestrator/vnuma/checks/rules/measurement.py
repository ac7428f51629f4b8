"""Rules on how a study measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from vnuma.checks.facts import Facts, Unknown, known
from vnuma.checks.rule import Fail, Fix, Severity, rule
from vnuma.checks.rules.shape_questions import host_object
from vnuma.checks.rules.sources import EVC

if TYPE_CHECKING:
    from vnuma.workloads.cross_join.settings import CrossJoin

_STATISTICS_TIME = "https://learn.microsoft.com/sql/t-sql/statements/set-statistics-time-transact-sql"

# About 70 bytes a row and table as the workload reads them; measured: 0.4 MB for 3000 rows a side.
ROW_BYTES = 70
# The range of last-level caches in current processors; vSphere does not report them.
SMALL_CACHE_MB, LARGE_CACHE_MB = 16, 512
# Statements with fewer result rows last a few milliseconds, the timer's own step.
QUANTISED_ROWS = 250_000


def _cross_join(facts: Facts) -> CrossJoin:
    """The study's cross join. Raises Unknown for other workloads."""
    workload = facts.study.study.workload
    if workload.name != "cross_join":
        raise Unknown(f"the study's workload is {workload.name}, which has no cross join")
    return cast("CrossJoin", workload)


@rule(
    "Q01",
    Severity.BLOCK,
    "The time includes the client",
    condition="the study times only forms that stream rows to the client; a warning if the first form does "
    "and a server form is also measured",
    consequence="Elapsed time includes fetching and displaying rows in the client (ASYNC_NETWORK_IO): in one "
    "published case, discarding the results alone reduced 2.4 s to 0.24 s.",
    fix="Add the form server (an aggregate over all pairs), and read both.",
    sources=(
        "https://sqlperformance.com/2020/03/waits-2/execution-plan-impact-on-async_network_io-waits-part-1",
        "https://davebally.co.uk/repost-my-favourite-wait-state-async_network_iorepost/",
    ),
    reads="study",
)
def q01(facts: Facts) -> Fail | None:
    forms = _cross_join(facts).forms
    if forms[0] != "client":
        return None
    other_forms = any(form != "client" for form in forms)
    observed = {"forms": ", ".join(forms)}
    if other_forms:
        return Fail(observed, Fix("Also read the form that sends no rows."), Severity.WARN)
    return Fail(observed)


@rule(
    "Q04",
    Severity.WARN,
    "Fiber mode makes timings wrong",
    condition="lightweight pooling is on",
    consequence="SET STATISTICS TIME is not accurate in fiber mode.",
    fix="Turn lightweight pooling off and restart SQL Server.",
    sources=(_STATISTICS_TIME,),
    reads="sql",
)
def q04(facts: Facts) -> Fail | None:
    return (
        Fail({"lightweight pooling": "1"})
        if known(facts.sql.server.lightweight_pooling, "lightweight pooling")
        else None
    )


@rule(
    "Q05",
    Severity.WARN,
    "TOP without ORDER BY",
    condition="a statement of sql_script uses TOP (n) without ORDER BY",
    consequence="Each run may read different rows with a different plan.",
    fix="Order by the primary key, and record the plan's hash.",
    sources=("https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql",),
    reads="study",
)
def q05(facts: Facts) -> Fail | None:
    unordered = facts.study.study.workload.unordered_tops
    return Fail({"statements": ", ".join(unordered)}) if unordered else None


@rule(
    "Q06",
    Severity.WARN,
    "The input fits the processor's cache",
    condition="the largest size reads less than a last-level cache of 16 MB; not evaluated up to 512 MB, "
    "because vSphere does not report cache sizes",
    consequence="Data that fits the cache is not read from memory, so the distance to memory cannot show.",
    fix="Also measure scan_aggregate over several times the cache size, or mention it with the result.",
    sources=("https://frankdenneman.nl/2016/07/11/numa-deep-dive-part-3-cache-coherency/",),
    reads="study",
)
def q06(facts: Facts) -> Fail | None:
    megabytes = _megabytes_read(facts)
    if megabytes > LARGE_CACHE_MB:
        return None
    if megabytes > SMALL_CACHE_MB:
        raise Unknown(f"about {megabytes:.0f} MB are read, and the cache size is unknown")
    return Fail({"input of the largest size": f"about {megabytes:.2g} MB"})


def _megabytes_read(facts: Facts) -> float:
    workload = facts.study.study.workload
    if workload.name == "scan_aggregate":
        return max(workload.sizes)
    return 2 * max(_cross_join(facts).sizes) * ROW_BYTES / 1024 / 1024


@rule(
    "Q07",
    Severity.WARN,
    "Short statements against a timer of 1 ms",
    condition="a server form with at most 500 rows a side, timed by messages (clock: messages) and not "
    "repeated in one batch",
    consequence="Times of a few milliseconds are whole milliseconds: differences of a percent cannot show.",
    fix="Keep clock: auto, which reads microseconds from sys.dm_exec_query_stats, or use larger sizes.",
    sources=(
        "https://learn.microsoft.com/sql/relational-databases/system-dynamic-management-views/"
        "sys-dm-exec-query-stats-transact-sql",
    ),
    reads="study",
    unconfirmed=True,
)
def q07(facts: Facts) -> Fail | None:
    workload = _cross_join(facts)
    short = [size for size in workload.sizes if size * size <= QUANTISED_ROWS]
    if workload.clock != "messages":
        return None
    if "server" not in workload.forms or not short:
        return None
    return Fail({"short sizes": ", ".join(map(str, short)), "form": "server"})


@rule(
    "Q08",
    Severity.INFO,
    "EVC hides CPU features from the guest",
    condition="an EVC mode is in effect on the host",
    consequence="Guests see the CPU features of the mode's generation, not the host's own: results hold for "
    "this mode. It does not make hosts alike: clock, caches and NUMA nodes stay those of each processor.",
    fix="State the mode with the results, compare only hosts with the same processor, and measure again "
    "after the mode has changed and the VM was power-cycled.",
    sources=(
        EVC,
        "https://developer.broadcom.com/xapis/virtual-infrastructure-json-api/latest/data-structures/EVCMode",
    ),
    reads="host",
    in_study=Severity.WARN,
    related=("T19",),
)
def q08(facts: Facts) -> Fail | None:
    mode = known(facts.host.evc_mode, "the host's EVC mode")
    if not mode:
        return None
    cluster = facts.subject.cluster
    models = {host.cpu_model for host in (cluster.hosts if cluster else (facts.host,)) if host.cpu_model}
    return Fail(
        {"EVC mode": mode, "processors": ", ".join(sorted(models)) or "not read"},
        object=host_object(facts.host),
    )
