"""Two runs side by side: refused where they must agree, judged by the interval, said for pipelines."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from tests.report.build import ARMS, build, story, study_text
from tests.support.stores import new_store
from vnuma.analysis.between_runs import Clocks, changes, clocks_of
from vnuma.analysis.distributions import dunnett_constant
from vnuma.analysis.result import CellPoint
from vnuma.analysis.verdict import Label, Rules, Withheld
from vnuma.cli.main import app
from vnuma.errors import InputError, ThresholdMet, UsageError
from vnuma.report.comparison.two_runs import (
    Comparison,
    Condition,
    as_text,
    compare_runs,
    pair_answer,
    parse_condition,
    states,
)
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.page.comparison_page import write_comparison
from vnuma.store.rows import RunState

TEXT = study_text(sizes="500", forms="client")
LEAVING = TEXT.replace("blocks: 6", "stop: decided, max_blocks: 12")
SLOWER = Condition("slower", 0.02)
RULES = Rules(0.01, None, control_failed=False)


STORIES = {
    "plain": story(),
    "4x4 slower, other host": story(1.05, only="4x4", host="esx02", esxi="8.0.2 build 1"),
    "slower": story(1.05),
    "4x4 faster": story(0.9, only="4x4"),
    "two sizes": story(text=study_text(sizes="500, 1000", forms="client")),
    "hardware": story(scenario=None),
    "other arms": story(text=TEXT.replace("affinity: physical_cores, ", "")),
    "noisy": story(sd=0.004),
    "noisy, 4x4 a little slower": story(1.021, only="4x4", sd=0.004),
    "few": story(text=study_text(sizes="500", forms="client", blocks=3)),
    "few, slower": story(1.5, text=study_text(sizes="500", forms="client", blocks=3)),
    # Other VMs, since a run that has not ended holds its own.
    "left": story(text=LEAVING.replace("sql16", "sql19"), stop_after=24, state=RunState.STOPPED),
    "left, 4x4 slower": story(
        1.05, only="4x4", text=LEAVING.replace("sql16", "sql20"), stop_after=24, state=RunState.STOPPED
    ),
    "left and going": story(
        1.05, only="4x4", text=LEAVING.replace("sql16", "sql21"), stop_after=24, state=RunState.RUNNING
    ),
    "just begun": story(text=TEXT.replace("sql16", "sql18"), stop_after=0, state=RunState.RUNNING),
    "running": story(text=TEXT.replace("sql16", "sql17"), stop_after=14, state=RunState.RUNNING),
}


class Runs:
    """The stories as runs of one store, each written when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.store = new_store(folder / "vnuma.db")
        self._known: dict[str, LoadedRun] = {}

    def __getitem__(self, name: str) -> LoadedRun:
        if name not in self._known:
            self._known[name] = load_run(self.store, build(self.store, STORIES[name]).name)
        return self._known[name]

    def compared(self, before: str, after: str, *allow: str) -> Comparison:
        """Two of them side by side."""
        return compare_runs([self[before]], [self[after]], allow)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """One store for the module: runs are only read."""
    return Runs(tmp_path_factory.mktemp("compare"))


def test_a_run_without_a_measured_cell_is_not_said_to_differ(runs: Runs) -> None:
    """Its server is not known yet, so no setting is said to differ."""
    for order in (("plain", "just begun"), ("just begun", "plain")):
        with pytest.raises(InputError, match="is running and has not measured sql18 yet"):
            runs.compared(*order)


def test_an_arm_that_became_slower_is_found_and_the_others_are_equivalent(runs: Runs) -> None:
    """Only 4x4 was slowed by 5%: it alone is slower, and its gap to the reference grew by as much."""
    (pair,) = runs.compared("plain", "4x4 slower, other host").pairs
    words = {change.arm: change.gap.label for change in pair.changes if change.gap}
    slowed = next(change for change in pair.changes if change.arm == "4x4")

    assert words == {arm: Label.SLOWER if arm == "4x4" else Label.EQUIVALENT for arm in ARMS if arm != "1x16"}
    assert slowed.own.ratio == pytest.approx(1.05)
    assert slowed.gap is not None
    assert slowed.gap.ratio == pytest.approx(1.05)
    assert next(change for change in pair.changes if change.arm == "1x16").gap is None
    changed, _, others = pair_answer(pair).partition("; ")
    assert "4x4 slower" in changed
    assert all(arm in others for arm in ARMS if arm not in ("1x16", "4x4"))


def test_what_changed_for_every_arm_alike_is_no_arm_s_change(runs: Runs) -> None:
    """Another host made all of it 5% slower: the gaps are as they were, the own figures show it."""
    (pair,) = runs.compared("plain", "slower").pairs
    text = " ".join(as_text(runs.compared("plain", "slower"), SLOWER).split())

    assert {change.gap.label for change in pair.changes if change.gap} == {Label.EQUIVALENT}
    assert [change.own.ratio for change in pair.changes] == pytest.approx([1.05] * len(ARMS))
    assert "1x16 the reference; own figures +5.0%" in text
    assert "FAILS" not in text


def test_the_interval_is_welchs_with_bonferroni() -> None:
    """Against scipy's t-test for unequal variances, to 1e-9."""
    generator = np.random.default_rng(6)
    one, other = generator.normal(0, 0.01, 8), generator.normal(0.01, 0.03, 6)
    host = generator.normal(9, 0.02, 8)
    before = {arm: dict(enumerate(host + one * (arm != "1x16"))) for arm in ("1x16", "2x8", "4x4")}
    after = {arm: dict(enumerate(host[:6] + other * (arm != "1x16"))) for arm in ("1x16", "2x8", "4x4")}
    _, second, _ = changes([before], [after], "1x16", RULES)
    expected = stats.ttest_ind(other, one, equal_var=False).confidence_interval(1 - 0.05 / 2)
    assert second.gap is not None
    interval = second.gap.interval
    assert interval is not None
    assert [math.log(interval.low), math.log(interval.high)] == pytest.approx(
        [expected.low, expected.high], abs=1e-9
    )


def scattering(*gaps: float) -> list[dict[str, dict[int, float]]]:
    """Runs of six quiet blocks in which 2x8 lies that far behind the reference, and 4x4 does not."""
    noise = (0.0001, -0.0001, 0.0002, -0.0002, 0.0001, -0.0001)
    return [
        {
            "1x16": dict.fromkeys(range(6), 9.0),
            "2x8": {block: 9.0 + gap + shift for block, shift in enumerate(noise)},
            "4x4": {block: 9.0 + shift for block, shift in enumerate(noise)},
        }
        for gap in gaps
    ]


def test_an_arm_that_scatters_from_run_to_run_is_not_said_to_have_changed() -> None:
    """0.5% between two runs without a change: a third run that is as far away shows none; two runs alone do.

    Its half-width by hand: its own scatter between the first two runs, with two degrees of freedom, in
    Dunnett's interval for two arms.
    """
    one, again, then = scattering(0.0, 0.005, 0.0075)
    alone = changes([again], [then], "1x16", RULES)[1].gap
    gap = changes([one, again], [then], "1x16", RULES)[1].gap

    assert alone is not None
    assert gap is not None
    assert (alone.label, gap.label) == (Label.EQUIVALENT, Label.UNDECIDED)
    assert alone.interval is not None
    assert not alone.interval.contains(1.0)
    assert gap.interval is not None
    se = math.sqrt(0.005**2 / 2 * (1 / 2 + 1))
    half = dunnett_constant(0.05, 2, 2, 0.5) * se
    assert [math.log(gap.interval.low), math.log(gap.interval.high)] == pytest.approx(
        [0.005 - half, 0.005 + half], abs=1e-9
    )


def test_a_third_run_that_agrees_narrows_no_equivalence_interval() -> None:
    """One degree of freedom: the runs' 95% interval is wider than that of their boots, and the 90% narrower.

    By hand: three runs of six pairs with the same scatter, whose mean error has ten degrees of freedom.
    """
    runs = [{arm: run[arm] for arm in ("1x16", "2x8")} for run in scattering(0.0, 0.0000186, 0.0000093)]
    gap = changes(runs[:2], runs[2:], "1x16", RULES)[1].gap
    each = math.sqrt(12e-8 / 5 / 6)

    assert gap is not None
    assert gap.interval is not None
    assert gap.equivalence_interval is not None
    runs_error = 0.0000186 * math.sqrt(1 / 2 * (1 / 2 + 1))
    assert math.log(gap.interval.high) == pytest.approx(stats.t.ppf(0.975, 1) * runs_error, abs=1e-9)
    assert math.log(gap.equivalence_interval.high) == pytest.approx(
        stats.t.ppf(0.95, 10) * each * math.sqrt(1.5), abs=1e-9
    )


def test_runs_on_one_side_must_match(runs: Runs) -> None:
    """Other sizes do not repeat a run, and --allow is about the change."""
    found = compare_runs([runs["plain"], runs["noisy"]], [runs["slower"]])
    assert found.names == (f"{runs['plain'].label} and {runs['noisy'].label}", runs["slower"].label)
    assert "run A twice" not in as_text(found, None)

    with pytest.raises(InputError, match="on one side of the change and differ: Study, sizes"):
        compare_runs([runs["plain"], runs["two sizes"]], [runs["slower"]])


@pytest.mark.parametrize(
    ("names", "after"), [(["a", "b", "c"], ["d"]), (["a", "b", "c"], ["a", "b", "c"]), (["a", "b"], ["c"])]
)
def test_a_change_needs_runs_on_both_sides(names: list[str], after: list[str]) -> None:
    """Those after it are some of the named runs."""
    options = [text for name in after for text in ("--after", name)]
    done = CliRunner().invoke(app, ["compare", *names, *options])

    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("--after ")


def test_arms_that_left_early_are_compared_at_a_stricter_level(runs: Runs) -> None:
    """Their four pairs are valid boots; what they showed decided their number, so 5% would err too often."""
    (pair,) = compare_runs([runs["left"]], [runs["left, 4x4 slower"]]).pairs
    gaps = {change.arm: change.gap for change in pair.changes if change.gap}
    four = next(change for change in pair.changes if change.arm == "16x1")

    assert (four.before, four.after) == (4, 4)
    assert {arm: gap.label for arm, gap in gaps.items()} == {
        "2x8": Label.UNDECIDED,
        "4x4": Label.SLOWER,
        "8x2": Label.UNDECIDED,
        "16x1": Label.UNDECIDED,
    }


def test_what_must_agree_is_refused_with_the_command_that_allows_it(runs: Runs) -> None:
    """Different sizes: both are named, and so is the option; with it the common sizes are compared."""
    with pytest.raises(InputError, match=r"study\.sizes: 500 -> 500, 1000") as caught:
        runs.compared("plain", "two sizes")
    assert "--allow study.sizes" in str(caught.value.fix)

    found = runs.compared("plain", "two sizes", "study.sizes")
    assert found.pairs[0].sizes == (500,)
    text = " ".join(as_text(found, None).split())
    assert "differs, as allowed: Study, sizes: 500 -> 500, 1000" in text
    assert "elapsed time in ms at 500 rows a side, form client" in text


def test_arms_that_were_set_otherwise_are_refused(runs: Runs) -> None:
    """The same name is not the same arm."""
    with pytest.raises(InputError, match=r"arm\.1x16: "):
        runs.compared("plain", "other arms")


def test_what_may_differ_is_said(runs: Runs) -> None:
    """Another host and release are what such a comparison is for."""
    text = as_text(runs.compared("plain", "4x4 slower, other host"), None)

    assert "Must agree  equal" in text
    flat = " ".join(text.split())
    assert "Host, Name: esx01 -> esx02" in flat
    assert "Host, ESXi: 6.0.0 build 5050593 -> 8.0.2 build 1" in flat
    assert "time is not randomised" in flat
    assert text.startswith("SIMULATED")
    assert "Time of a cell" not in flat
    assert "Timed executions" not in flat


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ("plain", "4x4 slower, other host", "met"),
        ("noisy", "noisy, 4x4 a little slower", "not met"),
        ("plain", "4x4 faster", "not met"),
    ],
)
def test_the_condition_looks_at_the_limit(runs: Runs, before: str, after: str, state: str) -> None:
    """An estimate beyond 2% is not enough; the whole interval has to be."""
    (pair,) = runs.compared(before, after).pairs

    assert {SLOWER.of(change.gap) for change in pair.changes if change.arm == "4x4"} == {state}


def test_too_few_boots_are_not_evaluated_and_never_fail(runs: Runs) -> None:
    """Three blocks give no verdict, so the condition is evaluated for no arm."""
    found = runs.compared("few", "few, slower")

    assert [state for *_, state in states(found, SLOWER)] == ["not evaluated"] * 4


def test_withheld_words_stay_withheld() -> None:
    """An A/A alarm in either run leaves no word about the change."""
    values = {arm: {block: 9.0 + block / 1e4 for block in range(8)} for arm in ("1x16", "2x8")}
    _, change = changes([values], [values], "1x16", replace(RULES, withheld=Withheld.A_A_ALARM))

    assert change.gap is not None
    assert change.gap.withheld is Withheld.A_A_ALARM
    assert SLOWER.of(change.gap) == "not evaluated"


def test_a_clock_too_coarse_to_see_a_change_does_not_show_that_there_is_none() -> None:
    """Both runs read 300 ms in every block, in steps of 10: 4 means, each off by up to half a step."""
    values = {arm: dict.fromkeys(range(8), math.log(300)) for arm in ("1x16", "2x8")}
    step = math.log(310 / 300)
    _, change = changes([values], [values], "1x16", RULES, Clocks(step, 2 * step**2 / 12))

    assert change.gap is not None
    assert change.gap.interval is not None
    width = stats.t.ppf(0.975, 14) * step * math.sqrt(4 / 12)
    assert math.log(change.gap.interval.high) == pytest.approx(width)
    assert change.gap.label is not Label.EQUIVALENT


def test_repeated_runs_do_not_add_to_a_clocks_error() -> None:
    """Three runs of one side that read the same figure are off by one step together, not by three."""
    point = CellPoint("2x8", "2x8", 1, 0, 300.0, 0.0, (300.0,), ((300.0, 310.0, 300.0),))
    one, more = (clocks_of([[([point], [0])] * runs, [([point], [0])]]) for runs in (1, 3))

    assert one.left > 0
    assert more == one


def test_a_clock_is_judged_by_the_scatter_at_the_common_sizes(tmp_path: Path) -> None:
    """Size 500 reads 300 ms in both runs, once 310: 4 means, each off by up to half a step.

    Size 1000, which only one run has, scatters by more than a step; it says nothing about size 500.
    """
    store = new_store(tmp_path / "vnuma.db")
    noise = np.random.default_rng(5)

    def ms(label: str, block: int, size: int, _: str) -> float:
        coarse = 310.0 if (label, block) == ("4x4", 1) else 300.0
        return coarse if size == 500 else 900.0 * float(noise.normal(1, 0.1))

    texts = [study_text(sizes=sizes, forms="client") for sizes in ("500, 1000", "500")]
    told = [story(ms=ms, within_sd=0.0, text=text) for text in texts]
    both, one = (load_run(store, build(store, what).name) for what in told)
    (pair,) = compare_runs([both], [one], ["study.sizes"]).pairs
    gap = next(change.gap for change in pair.changes if change.arm == "2x8")

    assert gap is not None
    assert gap.interval is not None
    width = stats.t.ppf(1 - 0.05 / 8, 6 + 6 - 2) * math.log(310 / 300) * math.sqrt(4 / 12)
    assert math.log(gap.interval.high) == pytest.approx(width)


def test_a_control_that_failed_in_either_run_shows_no_equivalence(tmp_path: Path) -> None:
    """The instrument missed a known effect before: that nothing changed since is not shown either."""
    store = new_store(tmp_path / "vnuma.db")
    watched = TEXT.replace("a_a: true", "a_a: true, control: remote")
    one, other = (load_run(store, build(store, story(text=watched)).name) for _ in range(2))
    (pair,) = compare_runs([one], [other]).pairs

    assert {change.gap.withheld for change in pair.changes if change.gap} == {Withheld.CONTROL_FAILED}


def test_a_run_that_continues_is_said_to(runs: Runs) -> None:
    """Its figures will change."""
    text = as_text(runs.compared("plain", "running"), None)

    assert f"{runs['running'].run.name} is still going" in text


def test_a_run_that_still_goes_gives_no_verdict_even_where_arms_leave(runs: Runs) -> None:
    """A pipeline that compares after each block would look until something shows."""
    found = runs.compared("left", "left and going")

    assert {state for *_, state in states(found, SLOWER)} == {"not evaluated"}
    assert {change.gap.withheld for change in found.pairs[0].changes if change.gap} == {Withheld.NOT_ENDED}


def test_a_run_is_not_compared_with_itself(runs: Runs) -> None:
    """It would be equivalent, and say nothing."""
    with pytest.raises(InputError, match="with itself"):
        runs.compared("plain", "plain")


@pytest.mark.parametrize("text", ["slower", "slower>2", "slower<2%", "bigger>2%", "slower>nan%", ">2%"])
def test_other_conditions_are_refused(text: str) -> None:
    """With the form that is right."""
    with pytest.raises(UsageError, match="is not a condition") as refused:
        parse_condition(text)

    assert refused.value.exit_code == 2


def test_the_command_exits_with_10(runs: Runs) -> None:
    """As a pipeline calls it."""
    before, after = runs["plain"].run.name, runs["4x4 slower, other host"].run.name
    arguments = ["compare", before, after, "--store", f"sqlite:///{runs.store.place}"]
    result = CliRunner().invoke(app, [*arguments, "--fail-if", "slower > 2 %"])

    assert isinstance(result.exception, ThresholdMet)
    assert result.exception.exit_code == 10
    assert "sql16 4x4" in str(result.exception)
    assert CliRunner().invoke(app, arguments).exit_code == 0


def test_an_allowance_that_allows_nothing_is_refused(runs: Runs) -> None:
    """A misspelt key, or a change that was not made, must not pass unseen."""
    with pytest.raises(InputError, match=r"--allow study\.sizs: nothing that must match differs") as caught:
        runs.compared("plain", "two sizes", "study.sizes", "study.sizs")
    assert caught.value.fix == "These differ: study.sizes."

    with pytest.raises(InputError, match=r"study\.sizes"):
        runs.compared("plain", "slower", "study.sizes")


def test_vms_of_other_names_are_paired_by_the_user(runs: Runs) -> None:
    """Two runs of VMs that are called differently: the pair is named, a stranger refused."""
    found = compare_runs([runs["plain"]], [runs["running"]], (), {"sql16": "sql17"})

    assert [(pair.before.name, pair.after.name) for pair in found.pairs] == [("sql16", "sql17")]
    with pytest.raises(InputError, match=r"has no VM sql99") as caught:
        compare_runs([runs["plain"]], [runs["running"]], (), {"sql16": "sql99"})
    assert caught.value.fix == "It has sql17."


@pytest.mark.parametrize("text", ["sql16", "=sql17", "sql16=", ""])
def test_a_pair_of_vms_that_is_none_is_refused(text: str) -> None:
    """Both names, with an equals sign between them."""
    done = CliRunner().invoke(app, ["compare", "a.1", "a.2", "--vm", text])

    assert isinstance(done.exception, UsageError)
    assert "two different VMs" in str(done.exception)


def test_the_page_says_what_the_terminal_says(tmp_path: Path) -> None:
    """One file, its origin first, each gap as text next to its drawing; a VM's name cannot inject."""
    store = new_store(tmp_path / "vnuma.db")
    evil = "<b>sql</b>"
    text = study_text(sizes="500", forms="client", vms=f"'{evil}'")
    one, two = (build(store, story(factor, only="4x4", text=text)).name for factor in (1.0, 1.05))
    found = compare_runs([load_run(store, one)], [load_run(store, two)])
    write_comparison(found, SLOWER, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert evil not in page
    assert page.index("SIMULATED") < page.index("<main")
    assert page.count('<svg class="plot ') == len(ARMS) + 1
    assert f"FAILS {SLOWER}".replace(">", "&gt;") in page
    assert "script" not in page
