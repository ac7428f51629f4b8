"""The plan that a run stored before its first boot, held against what was run and how it is analysed."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.report.build import GOLDEN_STORY, Load, Lost, Story
from vnuma.analysis.verdict import Withheld
from vnuma.domain.study.order import METHOD, SCOPE, declaration, hash_of, plan_cells
from vnuma.domain.study.study_file import parse_study
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.trust import PlanCheck, plan_check
from vnuma.report.terminal.run_text import all_as_text
from vnuma.store.rows import Fact

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
    assert found.words == f"as declared (SHA-256 {found.sha256}); earlier runs of the study: quick.0"
    assert " ".join(all_as_text(run).split()).count(f"Plan {found.words}") == 1


@pytest.mark.parametrize(
    ("story", "changes", "said"),
    [
        (GOLDEN_STORY, {"method": METHOD - 1}, "method"),
        (GOLDEN_STORY, {"study_sha256": "0" * 64}, "study file"),
        (GOLDEN_STORY, {"stopping": {"blocks": 99, "precision": None, "max_hours": None}}, "stopping rule"),
        (GOLDEN_STORY, {"equivalence": 0.5}, "band"),
        (GOLDEN_STORY, {"at": datetime(2999, 1, 1, tzinfo=UTC)}, "after the first boot"),
        (replace(GOLDEN_STORY, stop_after=12), {}, "not begun"),  # by hand: no declared rule says why
        *((last_cell_fails(times), {}, "not complete") for times in (1, 2)),
    ],
)
def test_what_is_not_as_declared_is_named(
    loaded: Load, story: Story, changes: dict[str, Any], said: str
) -> None:
    """One difference each, and that one alone."""
    (differs,) = plan_check(declared(loaded(story), **changes)).differs

    assert said in differs


def test_a_plan_that_was_altered_loses_its_hash(loaded: Load) -> None:
    """The plan fits the run again, but is not the one that was hashed."""
    run = loaded(GOLDEN_STORY)
    plan = declaration(run.study, run.study_sha256, [])

    (differs,) = plan_check(with_facts(run, plan, hash_of(plan | {"seed": 8}))).differs
    assert re.search("altered", differs)


@pytest.mark.parametrize(
    ("failures", "withheld"), [(1, Withheld.NOT_ENDED), (2, Withheld.NOT_ENDED), (3, None)]
)
def test_a_run_stopped_before_its_last_cell_was_tried_again_has_no_verdicts(
    loaded: Load, failures: int, withheld: Withheld | None
) -> None:
    """`--resume` would measure it: one more look. After three of three failures no claim takes it again."""
    run = declared(loaded(last_cell_fails(failures)))
    (found,) = run.result.primary

    assert (found.blocks_not_begun, found.withheld, len(found.missing)) == (0, withheld, 1)
    assert bool(plan_check(run).differs) is bool(withheld)


def test_a_run_without_a_plan_is_not_said_to_differ(loaded: Load) -> None:
    """Of an older store, or with facts that somebody wrote into one."""
    run = loaded(GOLDEN_STORY)

    for seen in (run, with_facts(run, "text", "0" * 64)):
        assert plan_check(seen) == PlanCheck(None, (), ())
