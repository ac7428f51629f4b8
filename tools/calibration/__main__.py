"""Write the tables of docs/reference/calibration.md: what `vnuma calibrate` prints, then the hard cases.

python -m tools.calibration
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.calibration.case import Case
from tools.calibration.every_case import case_tables, every_case
from tools.page_markers import write_between
from vnuma.analysis.calibration.targets import SEED, STUDIES, Calibration, calibrate
from vnuma.report.model.grid import as_markdown
from vnuma.report.terminal.calibration_tables import origin, tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "calibration.md"
BEGIN = "<!-- written by tools/calibration: begin -->"
END = "<!-- written by tools/calibration: end -->"


def section(found: Calibration, cases: Sequence[Case]) -> str:
    """What stands between the page's two marks."""
    command = f"vnuma calibrate --studies {found.studies} --seed {found.seed}"
    every = (*tables(found), *case_tables(cases))
    return "\n".join([f"`{command}`: {origin(found)}\n", *map(as_markdown, every)])


if __name__ == "__main__":
    write_between(PAGE, BEGIN, END, section(calibrate(STUDIES, SEED), every_case(STUDIES, SEED)))
