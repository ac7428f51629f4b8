"""Statistics of a run: pure functions from samples to intervals and verdicts. See docs/statistics.md."""

from vnuma.analysis.analyse import analyse, analyse_one, compare_cells, precision_look
from vnuma.analysis.records import (
    AnalysisDesign,
    CellRecord,
    Column,
    NotEvaluated,
    PositiveControl,
    Sample,
    design_of,
)
from vnuma.analysis.result import Analysis, RunResult

__all__ = [
    "Analysis",
    "AnalysisDesign",
    "CellRecord",
    "Column",
    "NotEvaluated",
    "PositiveControl",
    "RunResult",
    "Sample",
    "analyse",
    "analyse_one",
    "compare_cells",
    "design_of",
    "precision_look",
]
