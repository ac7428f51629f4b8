"""Whether the host drifted: the same two slopes as for the times, on a query that arms hardly affect.

An alarm only, never a covariate: the sentinel runs inside the arm, so adjusting for it removes the effect (a
true 2.0% became 0.53%). Column effects are fitted first, since they belong to the arms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vnuma.analysis.cells import Boot, grid
from vnuma.analysis.drift import Drift, check_drift
from vnuma.analysis.fit import fit
from vnuma.analysis.records import NotEvaluated

NOT_RUN = NotEvaluated("no cell ran the sentinel")
"""The study did not request it, its workload has none, or no boot reached it."""


def check_sentinel(boots: Sequence[Boot], labels: Sequence[str]) -> Drift | NotEvaluated:
    """Slopes of ln(median sentinel time) over blocks and within them, for boots with one."""
    watched = [boot for boot in boots if boot.sentinel_ms]
    if not watched:
        return NOT_RUN
    cells = grid(watched, labels, lambda boot: math.log(boot.sentinel_ms or 1.0))
    positions = {(boot.block, boot.label): boot.position for boot in watched if boot.position is not None}
    return check_drift(fit(cells), positions)
