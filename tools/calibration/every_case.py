"""Every hard case, as a table beside its targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tools.calibration.case import Case, targets_of
from tools.calibration.decided import decided_cases
from tools.calibration.hard_cases import ONE_BY_ONE, hard_cases
from tools.calibration.noisy_arms import noisy_cases
from tools.calibration.pilots import pilot_cases
from tools.calibration.placed import placed_cases
from tools.calibration.promised_power import PILOTS
from tools.calibration.sentences import sentence_cases
from tools.calibration.tables import rate_texts, targets_table
from vnuma.report.model.grid import GridTable


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


def case_tables(cases: Sequence[Case]) -> Iterator[GridTable]:
    """All cases, and what they must reach."""
    rows = tuple(
        (
            item.where,
            item.target,
            f"{'≤' if item.at_most else '≥'} {item.bound * 100:g}",
            *rate_texts(item.rate),
        )
        for item in cases
    )
    yield GridTable("Hard cases, %", ("case", "what", "bound", "found", "± (MC)"), rows)
    yield targets_table(tuple(targets_of(cases)), "Targets of hard cases, %; bounds are widened likewise")
