"""The declared stopping rule: asked between blocks, stored, resumable, and shown in every report."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy

from tests.report.build import Story, build, noisy, study_text
from vnuma.analysis.wording import sentence
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.secrets import Secret
from vnuma.engine.access.target import SqlTarget, Target, VCenterTarget
from vnuma.engine.run.next_cell import LOOKS, ask_stop_rule, peek_next_cell
from vnuma.engine.run.progress import progress_of
from vnuma.report.model.methods import methods
from vnuma.report.model.model import load_run
from vnuma.report.model.trust import effective_count
from vnuma.report.model.words import answer_words
from vnuma.report.page.render import page_text
from vnuma.report.terminal.run_text import as_text
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


@pytest.mark.parametrize(("cells", "ends"), [(30, False), (35, False), (36, True), (37, False)])
def test_it_ends_after_a_complete_block_and_not_before_the_sixth(
    store: Store, cells: int, ends: bool
) -> None:
    """A quiet host: nothing after block 5, nothing inside block 6 or 7, the end after block 6."""
    context = begun(store, PRECISE, cells)

    assert bool(settled(context)) is ends
    with store.read() as connection:
        looks = facts.facts_of_run(connection, context.run.id, LOOKS)
    assert [look.key for look in looks] == ([f"before block {cells // 6 + 1}"] if cells % 6 == 0 else [])


def test_what_it_left_out_is_no_gap_and_every_report_says_so(store: Store) -> None:
    """144 cells were planned: 36 are all there are, none comes any more, and table and methods tell why."""
    context = begun(store, PRECISE, 36)
    reason = settled(context)

    assert reason is not None
    assert reason.startswith("precise: after 6 blocks every 95% half-width is at most 1% (widest 0.")
    assert peek_next_cell(context) is None
    with store.read() as connection:
        progress = progress_of(connection, context.run.name)
    assert (progress.valid, progress.total, progress.blocks) == (36, 36, 6)
    loaded = load_run(store, context.run.name)
    (analysis,) = loaded.result.primary
    assert (analysis.ended_by, analysis.blocks_not_begun) == (reason, 0)
    assert "Ended by its rule: precise: after 6 blocks" in " ".join(as_text(loaded).split())
    assert "at most 24 blocks. It ended by this rule: precise" in methods(loaded, context.vm, analysis)
    assert "For each of the 36 cells (36 valid)" in methods(loaded, context.vm, analysis)
    assert effective_count(loaded, context.vm).words == "36 of 36 cells effective as intended"


def test_an_arm_that_the_plan_left_out_keeps_no_run_going(store: Store) -> None:
    """A machine without a node for it has no cell of that arm: there is no interval to wait for."""
    context = begun(store, PRECISE, 36)
    its = "(SELECT id FROM attempt WHERE cell_id IN (SELECT id FROM cell WHERE label = '16x1'))"
    with store.write() as connection:
        for table, rows in (("sample", f"attempt_id IN {its}"), ("fact", f"attempt_id IN {its}")):
            connection.execute(sqlalchemy.text(f"DELETE FROM {table} WHERE {rows}"))
        connection.execute(sqlalchemy.text(f"DELETE FROM attempt WHERE id IN {its}"))
        connection.execute(sqlalchemy.text("DELETE FROM cell WHERE label = '16x1'"))

    reason = settled(context)

    assert reason is not None
    assert reason.startswith("precise: after 6 blocks")


def test_a_noisy_host_continues(store: Store) -> None:
    """Wide intervals after block 6, whatever they say: 24 blocks may be run."""
    assert settled(begun(store, PRECISE, 36, sd=0.02)) is None


def test_hours_end_it_before_a_block_that_would_pass_them(store: Store) -> None:
    """The average block so far, once more, would be too long; with fixed blocks too."""
    text = study_text(sizes="500", forms="client").replace("blocks: 6", "blocks: 6, max_hours: 0.0000001")

    reason = settled(begun(store, text, 6))

    assert reason is not None
    assert reason.startswith("max_hours: ")


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


DECIDED = study_text(blocks=6, sizes="500", forms="client").replace(
    "blocks: 6", "stop: decided, max_blocks: 12"
)
LOOK_4 = "decided after block 4"


def left(store: Store, context: VmContext) -> dict[str, str | None]:
    """For each label with cells left out, why."""
    with store.read() as connection:
        planned = cells_of_run(connection, context.run.id, context.vm.id)
    return {cell.label: cell.reason for cell in planned if cell.state == "skipped"}


def test_arms_leave_and_the_others_go_on(store: Store) -> None:
    """After block 4 three arms have a verdict: their cells are given up, the rest of the run is not."""
    context = begun(store, DECIDED, 24)

    assert settled(context) is None
    assert left(store, context) == dict.fromkeys(("4x4", "8x2", "16x1"), LOOK_4)
    with store.read() as connection:
        progress = progress_of(connection, context.run.name)
        (look,) = facts.facts_of_run(connection, context.run.id, LOOKS)
    assert (progress.valid, progress.total, progress.vms[0].ended_by) == (24, 24 + 8 * 3, None)
    assert isinstance(look.value, dict)
    assert look.value["decided"] == {
        "blocks": 4,
        "leave": dict.fromkeys(("4x4", "8x2", "16x1"), "slower"),
        "stay": ["2x8"],
    }


def test_a_look_is_decided_by_the_stored_cells_alone(store: Store) -> None:
    """Asked again after a kill between look and next block, it says and writes the same."""
    context = begun(store, DECIDED, 24)
    settled(context)
    before = left(store, context)

    assert settled(context) is None
    assert left(store, context) == before


def test_a_cell_that_was_given_up_holds_no_look_back(store: Store) -> None:
    """Its block is finished all the same: the arms with four pairs leave after block 4."""
    context = begun(store, DECIDED, 24, given_up=frozenset({("16x1", 1)}))

    assert settled(context) is None
    assert left(store, context) == dict.fromkeys(("2x8", "4x4", "8x2"), LOOK_4)


def test_a_given_up_cell_of_the_first_block_ends_no_run(store: Store) -> None:
    """After block 1 no arm has a verdict, with or without that cell."""
    context = begun(store, DECIDED, 6, given_up=frozenset({("16x1", 1)}))

    assert settled(context) is None
    assert left(store, context) == {}


def test_before_the_fourth_block_no_arm_leaves(store: Store) -> None:
    """Three blocks decide nothing."""
    context = begun(store, DECIDED, 18)

    assert settled(context) is None
    assert left(store, context) == {}


def test_the_run_ends_when_every_arm_has_left(store: Store) -> None:
    """Every arm is far from the reference: 24 boots of 72, all verdicts valid, no cell missing."""
    context = begun(store, DECIDED.replace("2x8, ", ""), 20)
    reason = settled(context)

    assert reason == "decided: every arm has its verdict after 4 blocks"
    assert peek_next_cell(context) is None
    loaded = load_run(store, context.run.name)
    (analysis,) = loaded.result.primary
    assert (analysis.ended_by, analysis.missing, analysis.withheld) == (reason, (), None)
    assert {arm.verdict.label for arm in analysis.arms} == {"slower"}
    with store.read() as connection:
        assert progress_of(connection, context.run.name).vms[0].ended_by == reason


def test_a_stopped_run_keeps_the_verdicts_that_it_has(store: Store) -> None:
    """Arms that left keep theirs, the open one is undecided, and nothing is withheld."""
    context = begun(store, DECIDED, 24)
    settled(context)

    loaded = load_run(store, context.run.name)
    (analysis,) = loaded.result.primary
    assert analysis.withheld is None
    assert {arm.arm: str(arm.verdict.label) for arm in analysis.arms} == {
        "2x8": "undecided",
        **dict.fromkeys(("4x4", "8x2", "16x1"), "slower"),
    }
    assert "4 of 12 declared blocks are complete" in answer_words(loaded, analysis)
    assert "; decided after block 4" in sentence(analysis.arms[1].verdict)
    assert "blocks_not_begun" not in {caution.id for caution in analysis.cautions}


def test_a_run_that_its_hours_ended_is_not_called_decided(store: Store) -> None:
    """The rule ended it after block 4 with an open arm; 24 of 72 boots were made."""
    context = begun(store, DECIDED.replace("max_blocks: 12", "max_blocks: 12, max_hours: 0.0000001"), 24)

    assert (settled(context) or "").startswith("max_hours: ")
    loaded = load_run(store, context.run.name)
    (analysis,) = loaded.result.primary
    assert {str(arm.verdict.label) for arm in analysis.arms} == {"slower", "undecided"}
    assert answer_words(loaded, analysis).endswith("Ended after 24 of at most 72 boots.")


def test_the_page_of_a_run_with_repeated_looks_has_no_ordinary_p(store: Store) -> None:
    """Neither an unadjusted interval nor an adjusted p is shown, in its table or its JSON."""
    context = begun(store, DECIDED.replace("2x8, ", ""), 20)
    settled(context)
    loaded = load_run(store, context.run.name)
    (analysis,) = loaded.result.primary

    page = page_text(loaded)

    assert page.count("none: repeated looks") == len(analysis.arms)
    assert answer_words(loaded, analysis).endswith("Decided after 20 of at most 60 boots.")
