"""The plan that a run stored before its first boot, held against what was run and how it is analysed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.report.build import GOLDEN_STORY, Lost, Story
from vnuma.analysis.verdict import Withheld
from vnuma.domain.study.order import METHOD, SCOPE, declaration, hash_of, plan_cells
from vnuma.domain.study.study_file import parse_study
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.trust import plan_check
from vnuma.report.terminal.run_text import all_as_text
from vnuma.store.rows import Fact

Load = Callable[[Story], LoadedRun]
BEFORE = datetime(2000, 1, 1, tzinfo=UTC)


def declared(loaded: LoadedRun, *, at: datetime = BEFORE, **changes: Any) -> LoadedRun:
    """The run with a plan; `changes` are what was declared otherwise."""
    plan = declaration(loaded.study, loaded.study_sha256, ["quick.0"]) | changes
    return with_facts(loaded, plan, hash_of(plan), at)


def with_facts(loaded: LoadedRun, plan: object, sha256: str, at: datetime = BEFORE) -> LoadedRun:
    """The run with these facts."""
    pairs = (("plan", plan), ("sha256", sha256))
    stored = tuple(Fact(0, loaded.run.id, None, None, SCOPE, key, value, at) for key, value in pairs)
    return replace(loaded, facts=(*loaded.facts, *stored))


def last_cell_fails(times: int) -> Story:
    """A complete run but for its last cell, which failed that often; a study allows three attempts."""
    last = plan_cells(parse_study(GOLDEN_STORY.text, "study.yml"), 0)[-1]
    key = (last.label, last.block)
    return replace(GOLDEN_STORY, given_up=frozenset({key}), lost={key: (Lost(),) * times})


def test_a_run_as_declared_says_so_with_its_hash_and_earlier_runs(loaded: Load) -> None:
    """Nothing differs; the earlier run stays visible."""
    run = declared(loaded(GOLDEN_STORY))
    found = plan_check(run)

    assert (found.differs, found.earlier_runs) == ((), ("quick.0",))
    assert found.sha256 is not None
    assert "declared" in found.words
    assert found.sha256 in " ".join(all_as_text(run).split())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"method": METHOD - 1}, "method"),
        ({"study_sha256": "0" * 64}, "study file"),
        ({"stopping": {"blocks": 99, "precision": None, "max_hours": None}}, "stopping rule"),
        ({"equivalence": 0.5}, "band"),
        ({"at": datetime(2999, 1, 1, tzinfo=UTC)}, "after the first boot"),
    ],
)
def test_what_is_not_as_declared_is_named(loaded: Load, changes: dict[str, Any], said: str) -> None:
    """One difference each, and that one alone."""
    (differs,) = plan_check(declared(loaded(GOLDEN_STORY), **changes)).differs

    assert said in differs


def test_a_plan_that_was_altered_loses_its_hash(loaded: Load) -> None:
    """The plan fits the run again, but is not the one that was hashed."""
    run = loaded(GOLDEN_STORY)
    plan = declaration(run.study, run.study_sha256, [])

    assert "altered" in plan_check(with_facts(run, plan, hash_of(plan | {"seed": 8}))).words


def test_a_run_that_ended_early_by_hand_is_not_as_declared(loaded: Load) -> None:
    """Blocks were not begun, and no declared rule says why."""
    (differs,) = plan_check(declared(loaded(replace(GOLDEN_STORY, stop_after=12)))).differs

    assert "not begun" in differs


@pytest.mark.parametrize("failures", [1, 2])
def test_a_run_stopped_before_its_last_cell_was_tried_again_has_no_verdicts(
    loaded: Load, failures: int
) -> None:
    """`--resume` would measure it: stopping there, on what was seen, is one more look."""
    run = declared(loaded(last_cell_fails(failures)))
    (differs,) = plan_check(run).differs
    (found,) = run.result.primary

    assert "not complete" in differs
    assert (found.blocks_not_begun, found.withheld) == (0, Withheld.NOT_ENDED)


def test_a_last_cell_that_used_up_its_attempts_keeps_no_verdict_back(loaded: Load) -> None:
    """Three of three failed: no claim takes it again."""
    run = declared(loaded(last_cell_fails(3)))
    (found,) = run.result.primary

    assert plan_check(run).differs == ()
    assert (found.at_declared_end, found.withheld, len(found.missing)) == (True, None, 1)


def test_a_run_without_a_plan_is_not_said_to_differ(loaded: Load) -> None:
    """Of an older store, or with facts that somebody wrote into one."""
    run = loaded(GOLDEN_STORY)

    for seen in (run, with_facts(run, "text", "0" * 64)):
        found = plan_check(seen)
        assert (found.sha256, found.differs) == (None, ())
        assert "none was stored" in found.words
