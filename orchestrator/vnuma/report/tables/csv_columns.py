"""The columns of a run's tidy tables: the dictionary of `vnuma results --format csv`."""

from __future__ import annotations

from vnuma.report.tables.tidy import Column

RUN = (
    Column("run", "text", "", "name of the run"),
    Column("simulated", "yes/no", "", "true: from the lab's cost model, not from hardware"),
    Column("scenario", "text", "", "the lab's scenario"),
    Column("partial", "yes/no", "", "true: the run is still going, figures will change"),
    Column("vm", "text", "", "inventory name of the VM"),
    Column("form", "text", "", "which of the workload's forms, as client or server"),
)
"""The first columns of every table."""

RESULTS = (
    *RUN,
    Column("metric", "text", "", "field that was analysed: elapsed_ms, cpu_ms, client_ms or value"),
    Column("primary", "yes/no", "", "true: this form and metric are used for the verdict"),
    Column(
        "size",
        "text",
        "",
        "size, in the study's size_word; `all`: the mean over sizes, used for the verdict",
    ),
    Column("arm", "text", "", "topology or named arm"),
    Column("n_boots", "whole", "", "boots (passes of a machine) behind the figures"),
    Column(
        "median_ms", "number", "ms", "median of boot medians; this and the next four where the unit is ms"
    ),
    Column("min_ms", "number", "ms", "smallest boot median"),
    Column("max_ms", "number", "ms", "largest boot median"),
    Column("mad_ms", "number", "ms", "median distance of boot medians from their median, not scaled"),
    Column("diff_ms", "number", "ms", "diff_percent of the reference's median"),
    Column("diff_percent", "number", "%", "within-block ratio to the reference, minus 1"),
    Column("level_percent", "number", "%", "level at which the limits hold for all arms together"),
    Column("lo_percent", "number", "%", "lower limit of diff_percent"),
    Column("hi_percent", "number", "%", "upper limit of diff_percent"),
    Column("verdict", "text", "", "slower, faster, equivalent, undecided, too few boots; or reference"),
    Column("withheld", "text", "", "why the verdict is withheld"),
    Column("provisional", "yes/no", "", "true: too few boots, the figures are provisional"),
    Column("reason", "text", "", "why there is no figure"),
    Column("metric_name", "text", "", "the metric in words"),
    Column("unit", "text", "", "unit of median to diff"),
    Column("better", "text", "", "lower or higher: which way is better"),
    Column("median", "number", "declared", "as median_ms, in the column `unit`"),
    Column("min", "number", "declared", "as min_ms"),
    Column("max", "number", "declared", "as max_ms"),
    Column("mad", "number", "declared", "as mad_ms"),
    Column("diff", "number", "declared", "as diff_ms"),
)

FIGURES = (
    *RUN,
    Column("size", "whole", "", "size, in the study's size_word"),
    Column("arm", "text", "", "topology or named arm; the A/A column counts with its arm"),
    Column("figure", "text", "", "name of the figure, as spins or remote_lookups"),
    Column("unit", "text", "", "its unit"),
    Column("better", "text", "", "lower or higher: which way is better"),
    Column("n_boots", "whole", "", "boots (passes of a machine) that have the figure"),
    Column("median", "number", "declared", "median of boot medians, in the column `unit`; not compared"),
    Column("reason", "text", "", "why there is no figure"),
)

WAITS = (
    *RUN,
    Column("arm", "text", "", "topology or named arm; `all`: all arms together"),
    Column(
        "wait_type",
        "text",
        "",
        "as sys.dm_exec_session_wait_stats names it; empty: none occurred, or `reason`",
    ),
    Column("share_percent", "number", "%", "wait time over elapsed time of the timed iterations that count"),
    Column("reason", "text", "", "why waits are not known"),
)
