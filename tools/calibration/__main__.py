"""How often the analysis errs on simulated studies whose truth is known: `make calibrate`.

Writes the tables of docs/reference/calibration.md, and one of docs/statistics.md. Exit code 1 if a target is
missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tools.calibration.decided import boots_table, decided_cases
from tools.calibration.hard_cases import ONE_BY_ONE, hard_cases, noisy_cases, pilot_cases, placed_cases
from tools.calibration.promised_power import PILOTS
from tools.calibration.sentences import sentence_cases
from tools.calibration.tables import case_tables, origin, tables
from tools.calibration.targets import SEED, STUDIES, Calibration, Case, calibrate, targets, targets_of
from tools.page_markers import write_between
from vnuma.report.model.grid import as_markdown

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "reference" / "calibration.md"
STATISTICS = DOCS / "statistics.md"
BEGIN = "<!-- written by tools/calibration: begin -->"
END = "<!-- written by tools/calibration: end -->"


def every_case(studies: int, seed: int, pilots: int = PILOTS) -> tuple[Case, ...]:
    """Simulate them, each kind with a stream of its own."""
    few = max(2, studies // ONE_BY_ONE)
    return (
        *hard_cases(studies, np.random.default_rng((seed, 5))),
        *sentence_cases(studies, few, np.random.default_rng((seed, 8))),
        *placed_cases(max(2, few // 2), np.random.default_rng((seed, 6))),
        *noisy_cases(studies, np.random.default_rng((seed, 9))),
        *decided_cases(studies // 2, few // 2, np.random.default_rng((seed, 10))),
        *pilot_cases(max(2, pilots // 4), np.random.default_rng((seed, 7))),
    )


def section(found: Calibration, cases: Sequence[Case]) -> str:
    """What stands between the page's two marks."""
    every = (*tables(found), *case_tables(cases))
    return "\n".join([f"`make calibrate`: {origin(found)}\n", *map(as_markdown, every)])


def _main() -> int:
    parser = argparse.ArgumentParser(prog="make calibrate", description=__doc__)
    parser.add_argument("--studies", type=int, default=STUDIES, help="simulated studies for each line")
    parser.add_argument("--seed", type=int, default=SEED, help="the same seed gives the same figures")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose tables are written")
    given = parser.parse_args()
    found = calibrate(given.studies, given.seed, progress=lambda name: print(f"simulating: {name}"))
    print("simulating: hard cases")
    cases = every_case(given.studies, given.seed)
    write_between(given.page, BEGIN, END, section(found, cases))
    if given.page == PAGE:
        print("simulating: boots to a verdict")
        table = boots_table(given.studies // 2, np.random.default_rng((given.seed, 11)))
        write_between(STATISTICS, BEGIN, END, as_markdown(table))
    failed = [target.name for target in (*targets(found), *targets_of(cases)) if not target.met]
    for name in failed:
        print(f"missed: {name}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(_main())
