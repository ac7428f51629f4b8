"""The declared stopping rule: asked between blocks, stored, resumable, and shown in every report."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy

from tests.report.build import Story, build, noisy, study_text
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Label
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.secrets import Secret
from vnuma.engine.access.target import SqlTarget, Target, VCenterTarget
from vnuma.engine.run.next_cell import LOOKS, ask_stop_rule, peek_next_cell
from vnuma.engine.run.progress import Progress, progress_of
from vnuma.report.model.methods import methods
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.model.trust import effective_count
from vnuma.report.model.words import answer_words
from vnuma.report.page.render import page_text
from vnuma.store import attempts, facts, leases
from vnuma.store.cells import cells_of_run
from vnuma.store.open import Store
from vnuma.store.rows import RunState

PRECISE = study_text(blocks=6, sizes="500", forms="client").replace("blocks: 6", "precision: 1%")
SECRET = Secret(env="NONE")


def begun(
    store: Store, text: str, cells: int, sd: float = 0.001, given_up: frozenset[tuple[str, int]] = frozenset()
) -> VmContext:
    """A run with that many ended cells, and the play that continues it."""
    story = Story(text=text, ms=noisy(sd), stop_after=cells, state=RunState.RUNNING, given_up=given_up)
    run = build(store, story)
    with store.read() as connection:
        (vm,) = leases.vms_of_run(connection, run.id)
        lease = leases.get_lease(connection, vm.vm_key)
    assert lease
    target = Target(
        name="sql16",
        vm="sql16",
        vcenter=VCenterTarget(host="none", user="none", password=SECRET),
        sql=SqlTarget(host="none", user="none", password=SECRET),
    )
    return VmContext(store, run, parse_study(text, "s.yml"), vm, target, lease.token)


def settled(context: VmContext) -> str | None:
    """What the rule says before the next cell."""
    following = peek_next_cell(context)
    assert following
    return ask_stop_rule(context, following)


DECIDED = study_text(blocks=6, sizes="500", forms="client").replace(
    "blocks: 6", "stop: decided, max_blocks: 12"
)
LOOK_4 = "decided after block 4"


HOURS = DECIDED.replace("max_blocks: 12", "max_blocks: 12, max_hours: 0.0000001")
THREE = DECIDED.replace("2x8, ", "")


def left(store: Store, context: VmContext) -> dict[str, str | None]:
    """For each label with cells left out, why."""
    with store.read() as connection:
        planned = cells_of_run(connection, context.run.id, context.vm.id)
    return {cell.label: cell.reason for cell in planned if cell.state == "skipped"}


def seen(store: Store, context: VmContext) -> tuple[LoadedRun, Analysis, Progress]:
    """The run as reports and `status` see it."""
    loaded = load_run(store, context.run.name)
    with store.read() as connection:
        return loaded, loaded.result.primary[0], progress_of(connection, context.run.name)


@pytest.mark.parametrize(
    ("text", "cells", "sd", "rule"),
    [
        (PRECISE, 30, 0.001, None),
        (PRECISE, 35, 0.001, None),
        (PRECISE, 36, 0.001, "precise"),
        (PRECISE, 37, 0.001, None),
        (PRECISE, 36, 0.02, None),
        (
            study_text(sizes="500", forms="client").replace("blocks: 6", "blocks: 6, max_hours: 0.0000001"),
            6,
            0.001,
            "max_hours",
        ),
        (DECIDED, 18, 0.001, None),
        (DECIDED, 24, 0.001, None),
        (THREE, 20, 0.001, "decided"),
        (HOURS, 24, 0.001, "max_hours"),
    ],
    ids=[
        *("quiet, block 5", "inside block 6", "after block 6", "inside block 7", "noisy", "hours"),
        *("before the first look", "an open arm", "every arm decided", "hours with an open arm"),
    ],
)
def test_a_run_ends_between_blocks_by_its_declared_rule_alone(
    store: Store, text: str, cells: int, sd: float, rule: str | None
) -> None:
    """Not before the sixth block by precision, and not inside a block; each look is stored."""
    context = begun(store, text, cells, sd)
    columns = 5 if text == THREE else 6

    assert (settled(context) or "").partition(":")[0] == (rule or "")
    with store.read() as connection:
        looks = facts.facts_of_run(connection, context.run.id, LOOKS)
    assert [look.key for look in looks] == (
        [f"before block {cells // columns + 1}"] if cells % columns == 0 else []
    )


def test_what_it_left_out_is_no_gap(store: Store) -> None:
    """144 cells were planned: 36 are all there are, none comes any more, and the methods tell why."""
    context = begun(store, PRECISE, 36)
    reason = settled(context)
    loaded, analysis, progress = seen(store, context)
    count = effective_count(loaded, context.vm)

    assert (reason or "").startswith("precise: after 6 blocks every 95% half-width is at most 1% (widest 0.")
    assert peek_next_cell(context) is None
    assert (progress.valid, progress.total, progress.blocks) == (36, 36, 6)
    assert (analysis.ended_by, analysis.blocks_not_begun) == (reason, 0)
    assert (count.planned, count.as_intended) == (36, 36)
    assert methods(loaded, context.vm, analysis).count(f"It ended by this rule: {reason}.") == 1


def test_an_arm_that_the_plan_left_out_keeps_no_run_going(store: Store) -> None:
    """A machine without a node for it has no cell of that arm: there is no interval to wait for."""
    context = begun(store, PRECISE, 36)
    its = "(SELECT id FROM attempt WHERE cell_id IN (SELECT id FROM cell WHERE label = '16x1'))"
    with store.write() as connection:
        for table, rows in (("sample", f"attempt_id IN {its}"), ("fact", f"attempt_id IN {its}")):
            connection.execute(sqlalchemy.text(f"DELETE FROM {table} WHERE {rows}"))
        connection.execute(sqlalchemy.text(f"DELETE FROM attempt WHERE id IN {its}"))
        connection.execute(sqlalchemy.text("DELETE FROM cell WHERE label = '16x1'"))

    assert (settled(context) or "").startswith("precise: after 6 blocks")


@pytest.mark.parametrize(("blocks", "ends"), [(0.6, False), (0.4, True)])
def test_hours_count_the_arms_that_are_still_there(store: Store, blocks: float, ends: bool) -> None:
    """After block 4 three of six columns leave: one more block takes half the time of those before it."""
    context = begun(store, DECIDED, 24)
    with store.read() as connection:
        past = attempts.lines_of_run(connection, context.run.id, context.vm.id)
    limit = sum(attempt.seconds for attempt in past) / 3600 * (1 + blocks / 4)
    design = context.study.design.model_copy(update={"max_hours": limit})

    reason = settled(replace(context, study=context.study.model_copy(update={"design": design})))

    assert (reason is not None) is ends


@pytest.mark.parametrize(
    ("cells", "gone", "arms"),
    [
        (24, (), ("4x4", "8x2", "16x1")),
        (24, ("16x1", 1), ("2x8", "4x4", "8x2")),  # the block is finished all the same
        (6, ("16x1", 1), ()),
        (18, (), ()),
    ],
    ids=["block 4", "with a cell given up", "block 1", "block 3"],
)
def test_arms_leave_after_the_block_that_decides_them(
    store: Store, cells: int, gone: tuple[str, int] | tuple[()], arms: tuple[str, ...]
) -> None:
    """Their cells are left out, the run goes on; asked again after a kill it says and writes the same."""
    context = begun(store, DECIDED, cells, given_up=frozenset({gone} if gone else ()))

    for _ in range(2):
        assert settled(context) is None
        assert left(store, context) == dict.fromkeys(arms, "decided after block 4")


def test_a_look_is_stored_with_what_it_decided(store: Store) -> None:
    """Three arms leave: 24 boots are made, and of 8 more blocks three columns are left."""
    context = begun(store, DECIDED, 24)
    settled(context)
    _, _, progress = seen(store, context)
    with store.read() as connection:
        (look,) = facts.facts_of_run(connection, context.run.id, LOOKS)

    assert (progress.valid, progress.total, progress.vms[0].ended_by) == (24, 24 + 8 * 3, None)
    assert isinstance(look.value, dict)
    assert look.value["decided"] == {
        "blocks": 4,
        "leave": dict.fromkeys(("4x4", "8x2", "16x1"), "slower"),
        "stay": ["2x8"],
    }


@pytest.mark.parametrize(
    ("text", "cells", "words", "boots"),
    [
        (THREE, 20, ("slower",) * 3, "Decided after 20 of at most 60 boots."),
        (DECIDED, 24, ("undecided", "slower", "slower", "slower"), None),
        (HOURS, 24, ("undecided", "slower", "slower", "slower"), "Ended after 24 of at most 72 boots."),
    ],
    ids=["every arm left", "stopped", "ended by its hours"],
)
def test_arms_that_left_keep_their_verdicts(
    store: Store, text: str, cells: int, words: tuple[str, ...], boots: str | None
) -> None:
    """The open one is undecided, nothing is withheld or missing, and no ordinary p is on the page."""
    context = begun(store, text, cells)
    reason = settled(context)
    loaded, analysis, progress = seen(store, context)
    answered = answer_words(loaded, analysis)

    assert (analysis.ended_by, analysis.missing, analysis.withheld) == (reason or "", (), None)
    assert progress.vms[0].ended_by == reason
    assert tuple(str(arm.verdict.label) for arm in analysis.arms) == words
    assert {arm.verdict.look for arm in analysis.arms if arm.verdict.label is Label.SLOWER} == {4}
    assert not {caution.id for caution in analysis.cautions} & {"blocks_not_begun"}
    assert boots is None or answered.endswith(boots)
    assert page_text(loaded).count("none: repeated looks") == len(analysis.arms)
