"""The 2019 paper's design on labs whose truth is known: each arm leaves once it is decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.report.model.model import load_run
from vnuma.store.rows import Outcome

ARMS = ("2x8", "4x4", "8x2", "16x1")
TRUTH = {arm: {"slower"} for arm in ARMS} | {"2x8": {"slower", "equivalent"}}
"""By Table 1 they are slower by 0.5, 1.6, 2.3 and 3.6%, in the mean over its sizes."""
MOST_BOOTS = 44


def run_to_its_end(home: Path, lab: LabFactory, scenario: str, seed: int) -> tuple[dict[str, str], int]:
    """The verdict of each arm, and the number of boots.

    Aggregates have the paper's ratios here, so that no row has to be sent.
    """
    cost = {"server_effect": 1} if scenario == "paper" else {"effect": "none"}
    running = lab({"name": scenario}, seed=seed, cost=cost, boot={"tools_seconds": 0, "sql_seconds": 0})
    steps = Steps.prepared(
        home,
        running,
        arms=["1x16", *ARMS],
        design={
            "blocks": None,
            "stop": "decided",
            "max_blocks": 12,
            "seed": seed,
            "a_a": True,
            "iterations": 3,
        },
        workload={"sizes": [500, 1000, 2000, 3000], "forms": ["server"]},
        dataset={"transaction_history_rows": 3000, "sales_order_detail_rows": 3000},
    )
    ended = steps.measure_all(steps.take())
    steps.restore()
    assert ended.startswith("decided: ") or ended == "every cell has ended"
    loaded = load_run(steps.store, steps.run.name)
    (analysis,) = loaded.result.primary
    boots = sum(attempt.outcome is Outcome.VALID for attempt in loaded.attempts)
    return {arm.arm: str(arm.verdict.label) for arm in analysis.arms}, boots


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 21))
def test_the_papers_arms_are_decided_in_fewer_boots(tmp_path: Path, lab: LabFactory, seed: int) -> None:
    """No verdict is wrong, none is missing, and fewer than 45 boots are run."""
    said, boots = run_to_its_end(tmp_path / "site", lab, "paper", seed)

    assert {arm: said[arm] in TRUTH[arm] for arm in ARMS} == dict.fromkeys(ARMS, True), said
    assert boots <= MOST_BOOTS


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 21))
def test_equal_arms_get_no_wrong_verdict(tmp_path: Path, lab: LabFactory, seed: int) -> None:
    """No arm is called slower or faster where there is no effect."""
    said, _ = run_to_its_end(tmp_path / "site", lab, "null", seed)

    assert set(said.values()) <= {"equivalent", "undecided"}
