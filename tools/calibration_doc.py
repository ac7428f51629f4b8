"""Write the tables of docs/reference/calibration.md: what `vnuma calibrate` prints.

python -m tools.calibration_doc
"""

from __future__ import annotations

from pathlib import Path

from tools.page_markers import write_between
from vnuma.analysis.calibration.run import SEED, STUDIES, Calibration, calibrate
from vnuma.report.model.grid import as_markdown
from vnuma.report.terminal.calibration_tables import origin, tables

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "calibration.md"
BEGIN = "<!-- written by tools/calibration_doc.py: begin -->"
END = "<!-- written by tools/calibration_doc.py: end -->"


def section(found: Calibration) -> str:
    """What stands between the page's two marks."""
    command = f"vnuma calibrate --studies {found.studies} --seed {found.seed}"
    return "\n".join([f"`{command}`: {origin(found)}\n", *map(as_markdown, tables(found))])


if __name__ == "__main__":
    write_between(PAGE, BEGIN, END, section(calibrate(STUDIES, SEED)))
