"""Two runs side by side: refused where they must agree, judged by the interval, said for pipelines."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from tests.report.build import ARMS, build, story, study_text
from tests.report.pages import Outline
from tests.support.stores import new_store
from vnuma.analysis.between_runs import Clocks, changes, clocks_of
from vnuma.analysis.distributions import dunnett_constant
from vnuma.analysis.result import CellPoint
from vnuma.analysis.verdict import Label, Rules, Verdict, Withheld
from vnuma.cli.main import app
from vnuma.errors import InputError, ThresholdMet, UsageError
from vnuma.report.comparison.two_runs import (
    Comparison,
    Condition,
    as_json,
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
CONTROLLED = TEXT.replace("a_a: true", "a_a: true, control: remote")
LEAVING = TEXT.replace("blocks: 6", "stop: decided, max_blocks: 12")
SLOWER = Condition("slower", 0.02)
RULES = Rules(0.01, None, control_failed=False)
Blocks = list[dict[str, dict[int, float]]]
NO_CLOCKS = Clocks(0.0, 0.0)


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
    "watched": story(text=CONTROLLED),
    "watched again": story(text=CONTROLLED, sd=0.0021),
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

    def gaps(self, before: str, after: str) -> dict[str, Verdict]:
        """How each arm's gap to the reference changed."""
        (pair,) = self.compared(before, after).pairs
        return {change.arm: change.gap for change in pair.changes if change.gap}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """One store for the module: runs are only read."""
    return Runs(tmp_path_factory.mktemp("compare"))


OTHER_HOST = "4x4 slower, other host"
ALIKE = dict.fromkeys(("2x8", "4x4", "8x2", "16x1"), Label.EQUIVALENT)


@pytest.mark.parametrize(
    ("after", "words", "own"),
    [
        (OTHER_HOST, ALIKE | {"4x4": Label.SLOWER}, {"1x16": 1.0, "4x4": 1.05}),
        ("slower", ALIKE, dict.fromkeys(ARMS, 1.05)),
    ],
)
def test_an_arms_change_is_that_of_its_gap_to_the_reference(
    runs: Runs, after: str, words: dict[str, Label], own: dict[str, float]
) -> None:
    """A change that all arms share, as by another host, shows in their own figures and in no gap."""
    found = runs.compared("plain", after)
    (pair,) = found.pairs
    figures = {change.arm: change.own.ratio for change in pair.changes}
    condition = {change.arm: SLOWER.of(change.gap) for change in pair.changes if change.gap}

    assert {arm: gap.label for arm, gap in runs.gaps("plain", after).items()} == words
    assert {arm: figures[arm] for arm in own} == pytest.approx(own)
    assert [arm for arm, state in condition.items() if state == "met"] == re.findall(
        r"(\S+) slower", pair_answer(pair)
    )
    assert len(re.findall(r"FAILS", as_text(found, SLOWER))) == list(words.values()).count(Label.SLOWER)


def gap_of_2x8(before: Blocks, after: Blocks, clocks: Clocks = NO_CLOCKS, rules: Rules = RULES) -> Verdict:
    """The change of its gap to 1x16."""
    gap = changes(before, after, "1x16", rules, clocks)[1].gap
    assert gap is not None
    return gap


def logs(gap: Verdict, *, equivalence: bool = False) -> list[float]:
    """Limits of an interval, as logarithms."""
    interval = gap.equivalence_interval if equivalence else gap.interval
    assert interval is not None
    return [math.log(interval.low), math.log(interval.high)]


def test_the_interval_is_welchs_with_bonferroni() -> None:
    """Against scipy's t-test for unequal variances, to 1e-9."""
    generator = np.random.default_rng(6)
    one, other = generator.normal(0, 0.01, 8), generator.normal(0.01, 0.03, 6)
    host = generator.normal(9, 0.02, 8)
    before = {arm: dict(enumerate(host + one * (arm != "1x16"))) for arm in ("1x16", "2x8", "4x4")}
    after = {arm: dict(enumerate(host[:6] + other * (arm != "1x16"))) for arm in ("1x16", "2x8", "4x4")}
    expected = stats.ttest_ind(other, one, equal_var=False).confidence_interval(1 - 0.05 / 2)

    assert logs(gap_of_2x8([before], [after])) == pytest.approx([expected.low, expected.high], abs=1e-9)


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
    alone, gap = gap_of_2x8([again], [then]), gap_of_2x8([one, again], [then])
    half = dunnett_constant(0.05, 2, 2, 0.5) * math.sqrt(0.005**2 / 2 * (1 / 2 + 1))

    assert (alone.label, gap.label) == (Label.EQUIVALENT, Label.UNDECIDED)
    assert logs(alone)[0] > 0
    assert logs(gap) == pytest.approx([0.005 - half, 0.005 + half], abs=1e-9)


def test_a_third_run_that_agrees_narrows_no_equivalence_interval() -> None:
    """One degree of freedom: the runs' 95% interval is wider than that of their boots, and the 90% narrower.

    By hand: three runs of six pairs with the same scatter, whose mean error has ten degrees of freedom.
    """
    runs = [{arm: run[arm] for arm in ("1x16", "2x8")} for run in scattering(0.0, 0.0000186, 0.0000093)]
    gap = gap_of_2x8(runs[:2], runs[2:])
    runs_error = 0.0000186 * math.sqrt(1 / 2 * (1 / 2 + 1))
    boots_error = math.sqrt(12e-8 / 5 / 6) * math.sqrt(1.5)

    assert logs(gap)[1] == pytest.approx(stats.t.ppf(0.975, 1) * runs_error, abs=1e-9)
    assert logs(gap, equivalence=True)[1] == pytest.approx(stats.t.ppf(0.95, 10) * boots_error, abs=1e-9)


def test_runs_on_one_side_must_match(runs: Runs) -> None:
    """Other sizes do not repeat a run, and --allow is about the change."""
    found = compare_runs([runs["plain"], runs["noisy"]], [runs["slower"]])
    assert found.names == (f"{runs['plain'].label} and {runs['noisy'].label}", runs["slower"].label)

    with pytest.raises(InputError):
        compare_runs([runs["plain"], runs["two sizes"]], [runs["slower"]])


@pytest.mark.parametrize(
    "options",
    [
        *(["a", "b", "c", "--after", "d"], ["a", "b", "--after", "c"]),
        ["a", "b", "c", "--after", "a", "--after", "b", "--after", "c"],
        *(["a.1", "a.2", "--vm", text] for text in ("sql16", "=sql17", "sql16=", "")),
        *(["a", "b", "--fail-if", text] for text in ("slower", "slower>2", "slower<2%", "bigger>2%", ">2%")),
        ["a", "b", "--fail-if", "slower>nan%"],
    ],
)
def test_options_that_mean_no_comparison_are_refused(options: list[str]) -> None:
    """Before anything is read: runs on both sides, two VMs of a pair, a condition with its percentage."""
    done = CliRunner().invoke(app, ["compare", *options])

    assert isinstance(done.exception, UsageError)
    named = next(one for one in options if one.startswith("--"))
    assert re.search(named, str(done.exception))


def test_arms_that_left_early_are_compared_at_a_stricter_level(runs: Runs) -> None:
    """Their four pairs are valid boots; what they showed decided their number, so 5% would err too often."""
    (pair,) = runs.compared("left", "left, 4x4 slower").pairs
    four = next(change for change in pair.changes if change.arm == "16x1")

    assert (four.before, four.after) == (4, 4)
    assert {arm: gap.label for arm, gap in runs.gaps("left", "left, 4x4 slower").items()} == {
        **dict.fromkeys(ALIKE, Label.UNDECIDED),
        "4x4": Label.SLOWER,
    }


def test_what_must_agree_is_refused_with_the_command_that_allows_it(runs: Runs) -> None:
    """Different sizes: with the option the common sizes are compared; an arm set otherwise is another arm."""
    with pytest.raises(InputError) as caught:
        runs.compared("plain", "two sizes")
    names = (runs["plain"].argument, runs["two sizes"].argument)
    assert str(caught.value.fix).endswith(f"vnuma compare {' '.join(names)} --allow study.sizes")

    (pair,) = runs.compared("plain", "two sizes", "study.sizes").pairs
    must = {item.key: (item.before, item.after) for item in pair.differ if item.key}
    assert (pair.sizes, must) == ((500,), {"study.sizes": ("500", "500, 1000")})

    with pytest.raises(InputError, match=r"arm\.1x16: "):
        runs.compared("plain", "other arms")


def test_what_may_differ_is_said(runs: Runs) -> None:
    """Another host and release are what such a comparison is for; what was measured is not listed."""
    document = json.loads(as_json(runs.compared("plain", OTHER_HOST), None))

    assert document["simulated"]
    assert document["vms"][0]["differs"] == [
        {"must_agree": None, "name": "Host, Name", "before": "esx01", "after": "esx02"},
        {"must_agree": None, "name": "Host, ESXi", "before": "6.0.0 build 5050593", "after": "8.0.2 build 1"},
    ]


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ("plain", OTHER_HOST, "met"),
        ("noisy", "noisy, 4x4 a little slower", "not met"),  # an estimate beyond 2%, not the whole interval
        ("plain", "4x4 faster", "not met"),
        ("few", "few, slower", "not evaluated"),  # three blocks give no verdict
        ("left", "left and going", "not evaluated"),  # a pipeline would look until something shows
    ],
)
def test_the_condition_looks_at_the_limit_of_a_verdict(
    runs: Runs, before: str, after: str, state: str
) -> None:
    """Without a verdict it is evaluated for no arm, and never fails."""
    found = {change.arm: state for _, change, state in states(runs.compared(before, after), SLOWER)}

    assert found["4x4"] == state
    assert state != "not evaluated" or set(found.values()) == {state}


def test_withheld_words_stay_withheld() -> None:
    """An A/A alarm in either run leaves no word about the change."""
    values = {arm: {block: 9.0 + block / 1e4 for block in range(8)} for arm in ("1x16", "2x8")}
    gap = gap_of_2x8([values], [values], rules=replace(RULES, withheld=Withheld.A_A_ALARM))

    assert (gap.withheld, SLOWER.of(gap)) == (Withheld.A_A_ALARM, "not evaluated")


def test_a_clock_too_coarse_to_see_a_change_does_not_show_that_there_is_none() -> None:
    """Both runs read 300 ms in every block, in steps of 10: 4 means, each off by up to half a step."""
    values = {arm: dict.fromkeys(range(8), math.log(300)) for arm in ("1x16", "2x8")}
    step = math.log(310 / 300)
    gap = gap_of_2x8([values], [values], Clocks(step, 2 * step**2 / 12))

    assert logs(gap)[1] == pytest.approx(stats.t.ppf(0.975, 14) * step * math.sqrt(4 / 12))
    assert gap.label is not Label.EQUIVALENT


def test_repeated_runs_do_not_add_to_a_clocks_error() -> None:
    """Three runs of one side that read the same figure are off by one step together, not by three."""
    point = CellPoint("2x8", "2x8", 1, 0, 300.0, 0.0, (300.0,), ((300.0, 310.0, 300.0),))
    one, more = (clocks_of([[([point], [0])] * runs, [([point], [0])]]) for runs in (1, 3))

    assert one.left > 0
    assert more == one


def test_a_figure_that_never_varies_has_the_step_of_its_last_digit_if_it_was_printed(tmp_path: Path) -> None:
    """A program's 5000.12 is 0.01 wide, a time of 5000.12 ms any width; neither shows equality."""
    store = new_store(tmp_path / "vnuma.db")
    constant = story(text=TEXT, ms=lambda *_: 5000.12, within_sd=0.0)
    timed = [load_run(store, build(store, constant).name) for _ in range(2)]
    design = replace(timed[0].result.design, printed=True)
    printed = [replace(run, result=replace(run.result, design=design)) for run in timed]

    for (one, other), narrow in ((timed, False), (printed, True)):
        (pair,) = compare_runs([one], [other]).pairs
        gaps = [change.gap for change in pair.changes if change.gap]
        assert {gap.label for gap in gaps} == {Label.UNDECIDED}
        assert {logs(gap)[1] < 1e-4 for gap in gaps} == {narrow}


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
    width = stats.t.ppf(1 - 0.05 / 8, 6 + 6 - 2) * math.log(310 / 300) * math.sqrt(4 / 12)

    assert gap is not None
    assert logs(gap)[1] == pytest.approx(width)


@pytest.mark.parametrize(
    ("before", "after", "withheld"),
    [("watched", "watched again", Withheld.CONTROL_FAILED), ("left", "left and going", Withheld.NOT_ENDED)],
)
def test_what_withholds_a_runs_verdicts_withholds_those_of_the_change(
    runs: Runs, before: str, after: str, withheld: Withheld
) -> None:
    """A control that failed in either run, or a run that still goes: its figures will change."""
    assert {gap.withheld for gap in runs.gaps(before, after).values()} == {withheld}


def test_the_command_exits_with_10(runs: Runs) -> None:
    """As a pipeline calls it."""
    before, after = runs["plain"].run.name, runs[OTHER_HOST].run.name
    arguments = ["compare", before, after, "--store", f"sqlite:///{runs.store.place}"]
    result = CliRunner().invoke(app, [*arguments, "--fail-if", "slower > 2 %"])

    assert parse_condition("slower > 2 %") == SLOWER
    assert isinstance(result.exception, ThresholdMet)
    assert result.exception.exit_code == 10
    assert re.findall(r"sql16 (\S+x\d+)", str(result.exception)) == ["4x4"]
    assert CliRunner().invoke(app, arguments).exit_code == 0


@pytest.mark.parametrize(
    ("before", "after", "options", "fix"),
    [
        ("plain", "plain", {}, "vnuma status lists the runs."),
        *(
            (*order, {}, "Compare them when it has valid cells: vnuma status RUN")
            for order in (("plain", "just begun"), ("just begun", "plain"))
        ),
        ("plain", "two sizes", {"allowed": ("study.sizes", "study.sizs")}, "These differ: study.sizes."),
        ("plain", "slower", {"allowed": ("study.sizes",)}, "Leave it out."),
        ("plain", "running", {"twins": {"sql16": "sql99"}}, "It has sql17."),
    ],
    ids=["itself", "no cell after", "no cell before", "misspelt", "no such difference", "no such VM"],
)
def test_runs_that_cannot_be_compared_are_refused_with_a_way_on(
    runs: Runs, before: str, after: str, options: dict[str, Any], fix: str
) -> None:
    """A run that has measured nothing is not said to differ: its server is not known yet."""
    with pytest.raises(InputError) as caught:
        compare_runs([runs[before]], [runs[after]], **options)

    assert caught.value.fix == fix.replace("RUN", runs["just begun"].run.name)


def test_vms_of_other_names_are_paired_by_the_user(runs: Runs) -> None:
    """Two runs of VMs that are called differently."""
    found = compare_runs([runs["plain"]], [runs["running"]], (), {"sql16": "sql17"})

    assert [(pair.before.name, pair.after.name) for pair in found.pairs] == [("sql16", "sql17")]


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
    assert page.count(f"FAILS {SLOWER}".replace(">", "&gt;")) == 1
    assert Outline(page).tags["script"] == 0
