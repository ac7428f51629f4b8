"""How far a result goes: which statements limit it, and what they rest on."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.report.build import EFFECTS, GOLDEN_STORY, Load, Story, build, noisy, study_text
from vnuma.analysis.verdict import Label
from vnuma.report.model.methods import methods
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.model.trust import (
    Contention,
    Statement,
    contention,
    limit_statements,
    limiting,
    warnings_of,
)
from vnuma.report.model.words import answer_words, blindness, done_words
from vnuma.report.terminal.run_text import as_text, brief_as_text
from vnuma.store import attempts, cells, facts, leases
from vnuma.store.open import Store
from vnuma.store.rows import Claim, RunState

CONTROLLED = study_text(blocks=8, sizes="500", forms="client").replace(
    "a_a: true", "a_a: true, control: remote"
)


def statements(run: LoadedRun) -> dict[str, Statement]:
    """By what they say in short."""
    ((vm, found),) = run.primary
    return {item.what: item for item in limit_statements(run, vm, found)}


@pytest.mark.parametrize(
    ("story", "kinds"),
    [
        (GOLDEN_STORY, {"Restored.": "holds", "Order and drift.": "no alarm", "A known effect.": "not run"}),
        (
            Story(stop_after=20, state=RunState.RUNNING),
            {"The run has not ended.": "limits it", "Restored.": "not run"},
        ),
        (Story(text=study_text(order="fixed")), {"Order and drift.": "alarm"}),
        (Story(text=study_text(a_a=False)), {"The same against itself (A/A).": "not run"}),
        (
            Story(),
            {
                "No hardware was measured.": "limits it",
                "1x16 and 16x1 gave the guest the same number of vNUMA nodes (1).": "limits it",
                "Effective topology.": "holds",
                "Processor time on the host.": "not evaluated",
            },
        ),
    ],
    ids=["golden", "running", "fixed order", "no A/A", "usual"],
)
def test_what_limits_a_result_depends_on_the_run(loaded: Load, story: Story, kinds: dict[str, str]) -> None:
    """Each with its kind; those that limit it come first."""
    found = statements(loaded(story))
    order = ("alarm", "limits it", "not run", "not evaluated", "no alarm", "holds")
    ranks = [order.index(item.kind) for item in found.values()]

    assert {what: found[what].kind for what in kinds} == kinds
    assert ranks == sorted(ranks)


def test_what_preflight_found_is_said_once_where_it_belongs(loaded: Load) -> None:
    """What bounds the result's meaning with the limits; the rest among the warnings."""
    shipped = {"id": "P24", "severity": "warn", "what": "Its logs are shipped.", "fix": "Pause the job."}
    run = loaded(Story(preflight=(*Story().preflight, shipped)))
    ((vm, found),) = run.primary

    assert {item.rule for item in limit_statements(run, vm, found) if item.rule} == {"Q06"}
    assert {item.id for _, item in warnings_of(run, vm, found)} & {"Q01", "Q06", "P24"} == {"P24"}


@pytest.mark.parametrize(
    ("story", "what", "figures"),
    [
        (Story(), "Most of the time went into sending rows.", ["12%", "93%"]),
        (GOLDEN_STORY, "The clock mostly timed the client.", ["93%"]),
    ],
    ids=["with the server form", "without"],
)
def test_time_spent_on_sending_rows_is_measured_not_guessed(
    loaded: Load, story: Story, what: str, figures: list[str]
) -> None:
    """By the same join without its rows, else by waits; preflight's general warning is then left out."""
    found = statements(loaded(story))

    assert re.findall(r"\d+%", found[what].text) == figures
    assert [item.rule for item in found.values() if item.rule] == ["Q06"]


def test_the_answer_of_a_run_before_its_declared_end_says_how_far_it_is(loaded: Load) -> None:
    """With a verdict withheld or without enough boots for one; the terminal's limits name it too."""
    stopped = Story(text=study_text(blocks=12), state=RunState.STOPPED)
    for blocks in (4, 7):
        run = loaded(replace(stopped, stop_after=blocks * 6))
        ((vm, found),) = run.primary
        limits = ". ".join(item.short for item in limiting(run, vm, found))

        assert found.complete_blocks == blocks
        assert done_words(run, found) in answer_words(run, found)
        assert limits in " ".join(brief_as_text(run).split())


@pytest.mark.parametrize(("effect", "shown"), [(0.2, True), (0.0, False)])
def test_a_control_that_shows_nothing_is_at_the_top(loaded: Load, effect: float, shown: bool) -> None:
    """It withholds equivalence and is the first sentence; a passed one is not a finding."""
    run = loaded(Story(text=CONTROLLED, ms=noisy(0.002, {**EFFECTS, "1x16 (remote)": effect, "2x8": 0.0})))
    (found,) = run.result.primary
    two = next(arm.verdict for arm in found.arms if arm.arm == "2x8")
    blind = blindness(found)

    assert (blind == "", two.label is Label.EQUIVALENT) == (shown, shown)
    assert answer_words(run, found).startswith(blind)
    assert blind in " ".join(as_text(run).split("Elapsed time")[0].split())
    assert statements(run)["A known effect."].kind == ("holds" if shown else "alarm")


def test_a_control_is_never_recommended(loaded: Load) -> None:
    """Even if it were the fastest, since it is not a configuration; the methods say what it is."""
    run = loaded(Story(text=CONTROLLED, ms=noisy(0.002, {**EFFECTS, "1x16 (remote)": -0.2})))
    (found,) = run.result.primary
    answered = answer_words(run, found).removeprefix(blindness(found))

    assert [words for words in (*found.recommended, answered) if "1x16 (remote)" in words] == []
    assert methods(run, run.vms[0], found).count("In 1x16 (remote), the positive control,") == 1


def counted(store: Store, *boots: object) -> Contention | str:
    """What a run says whose next boots counted that."""
    text = study_text(blocks=1, sizes="500", forms="client")
    run = build(store, Story(text=text, stop_after=0, state=RunState.RUNNING))
    with store.write() as conn:
        (vm,) = leases.vms_of_run(conn, run.id)
        lease = leases.get_lease(conn, vm.vm_key)
        assert lease
        for boot in boots:
            claim = cells.claim_next(conn, vm.id, lease.token, 3, exclusive_host=False)
            assert isinstance(claim, Claim)
            facts.add_attempt_facts(conn, claim.id, lease.token, {"counters": {"vm": boot}})
            cells.interrupt_attempts(conn, vm.id, lease.token)
        assert attempts.lines_of_run(conn, run.id) or not boots
    return contention(load_run(store, run.name), vm)


def series(highest: float) -> dict[str, object]:
    """One counter of a boot, in ms of 20 s over 16 vCPUs."""
    return {"unit": "ms", "interval_s": 20, "samples": 3, "mean": highest / 2, "highest": highest}


QUIET = {"cpu.ready.summation": series(320), "cpu.costop.summation": series(0)}
BUSY = {"cpu.ready.summation": series(32_000), "cpu.costop.summation": series(3_200)}


@pytest.mark.parametrize(
    ("boots", "found"),
    [
        ((QUIET, BUSY), (2, 0.1, 0.01, True)),
        (({"cpu.ready.summation": series(320)},), (1, 0.001, None, False)),
        (({"not_evaluated": "no sample: too short"},), "no sample: too short"),
        ((), "vSphere's counters were not read"),
    ],
    ids=["the worst 20 s of any boot", "no co-stop is not zero", "no sample", "no boot"],
)
def test_whether_the_host_had_time_for_the_vm(store: Store, boots: tuple[object, ...], found: object) -> None:
    """From vSphere's counters, or a reason. 320 s of vCPU time in 20 s: 32,000 ms of ready are 10%."""
    seen = counted(store, *boots)

    if isinstance(seen, Contention):
        assert (seen.boots, seen.ready, seen.co_stop, seen.contended) == pytest.approx(found)
    else:
        assert seen == found
