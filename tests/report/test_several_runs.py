"""Many runs, one answer: the run is the replicate, and what contradicts is said."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.oneway import anova_oneway
from typer.testing import CliRunner

from tests.report.build import build, story, study_text
from tests.support.stores import new_store
from vnuma.analysis.between_runs import heterogeneity, pool
from vnuma.analysis.compare import Contrast
from vnuma.analysis.outliers import OddCell
from vnuma.analysis.verdict import Label, Rules
from vnuma.cli.main import app
from vnuma.errors import InputError
from vnuma.report.comparison.several_runs import Pool, as_json, as_text, pool_runs
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.store.open import Store

RULES = Rules(0.01, None, control_failed=False)
LEAVING = study_text(sizes="500", forms="client").replace("blocks: 6", "stop: decided, max_blocks: 12")
STORIES = {
    "slower": story(1.030, only="4x4", host="esx01"),
    "slower too": story(1.034, only="4x4", host="esx02", sd=0.003),
    "slower as well": story(1.026, only="4x4", host="esx03", sd=0.0025),
    "faster": story(0.95, only="4x4", host="esx04"),
    "few": story(text=study_text(sizes="500", forms="client", blocks=3)),
    "two sizes": story(text=study_text(sizes="500, 1000", forms="client")),
    "hardware": story(scenario=None),
    **{
        f"left {number}": story(1.03 + number / 1000, only="4x4", text=LEAVING, stop_after=24)
        for number in (1, 2, 3)
    },
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for the module: runs are only read."""
    return new_store(tmp_path_factory.mktemp("pool") / "vnuma.db")


@pytest.fixture(scope="module")
def runs(store: Store) -> dict[str, LoadedRun]:
    """The stories by name."""
    return {name: load_run(store, build(store, one).name) for name, one in STORIES.items()}


def pooled(runs: dict[str, LoadedRun], *names: str) -> Pool:
    """Those of them together."""
    return pool_runs([runs[name] for name in names])


def contrasts(means: list[float], generator: np.random.Generator) -> list[Contrast]:
    """One arm in runs of 8 blocks with these means."""
    every = [mean + generator.normal(0, 0.005, 8) for mean in means]
    return [
        Contrast("4x4", "4x4", 8, float(d.mean()), None, None, tuple(map(float, d)), prediction=None)
        for d in every
    ]


def test_the_summary_is_students_t_over_runs() -> None:
    """Against scipy, Bonferroni over two arms; the prediction interval by the textbook."""
    runs = contrasts([0.01, 0.02, 0.015, 0.03], np.random.default_rng(1))
    found = pool("4x4", runs, 2, RULES)
    means = [float(np.mean(run.differences)) for run in runs]
    expected = stats.ttest_1samp(means, 0).confidence_interval(0.975)
    wide = stats.t.ppf(0.975, 3) * np.std(means, ddof=1) * math.sqrt(1 + 1 / 4)

    assert found.verdict is not None
    assert found.verdict.interval is not None
    assert found.prediction is not None
    assert [math.log(found.verdict.interval.low), math.log(found.verdict.interval.high)] == pytest.approx(
        [expected.low, expected.high], abs=1e-12
    )
    assert math.log(found.prediction.high) == pytest.approx(np.mean(means) + wide, abs=1e-12)


def test_runs_that_a_coarse_clock_rounds_alike_keep_its_error() -> None:
    """Three runs read the same 2% in steps of as much: they agree, and do not show a difference."""
    rounded = 2 * 0.02**2 / 12
    run = Contrast("4x4", "4x4", 8, 0.02, None, None, (0.02,) * 8, rounded=rounded)
    found = pool("4x4", [run] * 3, 1, RULES)
    width = stats.t.ppf(0.975, 2) * math.sqrt(rounded)

    assert found.verdict is not None
    assert found.verdict.interval is not None
    assert found.prediction is not None
    assert math.log(found.verdict.interval.high) == pytest.approx(0.02 + width)
    assert math.log(found.prediction.high) == pytest.approx(0.02 + width)
    assert found.verdict.label is Label.UNDECIDED


def test_whether_runs_differ_is_welchs_f() -> None:
    """Against statsmodels' anova_oneway with unequal variances, runs of 6 to 12 blocks."""
    generator = np.random.default_rng(5)
    groups = [generator.normal(0.01 * i, 0.005 * (i + 1), n) for i, n in enumerate((6, 8, 12))]
    expected = anova_oneway(groups, use_var="unequal", welch_correction=True)
    found = heterogeneity([tuple(map(float, group)) for group in groups])

    assert found is not None
    assert (found.f, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)


def test_runs_that_agree_give_their_word_and_a_wider_range_for_one_more(runs: dict[str, LoadedRun]) -> None:
    """4x4 is slower on each of three hosts; the page of figures says so with a row a run."""
    found = pooled(runs, "slower", "slower too", "slower as well")
    arm = next(one for one in found.arms if one.arm == "4x4")
    text = as_text(found)

    assert arm.verdict is not None
    assert arm.verdict.label is Label.SLOWER
    assert arm.prediction is not None
    assert arm.prediction.high - arm.prediction.low > 0.01
    assert "slower in all 3" in " ".join(text.split())
    assert text.count("esx0") >= 3
    assert [text.count(f"{unit.name} ") >= len(found.arms) for unit in found.units] == [True] * 3
    assert text.startswith("SIMULATED")


def test_runs_that_contradict_each_other_are_said_to(runs: dict[str, LoadedRun]) -> None:
    """Slower on three hosts, faster on the fourth: no word over runs, and the heterogeneity is named."""
    found = pooled(runs, "slower", "slower too", "slower as well", "faster")
    arm = next(one for one in found.arms if one.arm == "4x4")
    text = " ".join(as_text(found).split())

    assert arm.verdict is not None
    assert arm.verdict.label is Label.UNDECIDED
    assert arm.heterogeneity is not None
    assert arm.heterogeneity.sd > 0.02
    assert "slower in 3, faster in 1: they contradict each other" in text
    assert "runs differ by more than their own errors explain" in text


def test_every_equivalent_states_what_could_have_gone_unseen(runs: dict[str, LoadedRun]) -> None:
    """In one VM 0 of 6 boots, over the runs 0 of 18; without a summary that of a VM. As text and as JSON."""
    found = pooled(runs, "slower", "slower too", "slower as well")
    arm = next(one for one in json.loads(as_json(found))["arms"] if one["arm"] == "2x8")
    alone = " ".join(as_text(pooled(runs, "slower", "slower too", "few")).split())

    assert (arm["verdict"], {one["verdict"] for one in arm["each"]}) == ("equivalent", {"equivalent"})
    assert arm["unseen_share"] == pytest.approx(1 - 0.05 ** (1 / 18))
    assert [one["unseen_share"] for one in arm["each"]] == pytest.approx([1 - 0.05 ** (1 / 6)] * 3)
    assert "boots do not exclude that up to 16% are in a state" in " ".join(as_text(found).split())
    assert "2x8: no summary" in alone
    assert "in up to 40% of an arm's boots could have been missed" in alone


@pytest.mark.parametrize(("slow_in", "word"), [(1, Label.EQUIVALENT), (3, Label.UNDECIDED)])
def test_boots_in_another_state_are_counted_over_all_runs(slow_in: int, word: Label) -> None:
    """1 of 24 odd boots is named; 3 of 24 are a second state, and no mean over both is given."""
    slow = OddCell("4x4", 2, 0.1, 0.02, 0.11)
    means = [0.0, 0.0001, -0.0001]
    made = [
        Contrast("4x4", "4x4", 8, mean, None, None, (mean,) * 8, noticeable=0.02, paired=tuple(range(8)))
        for mean in means
    ]
    runs = [replace(one, odd=(slow,)) for one in made[:slow_in]] + made[slow_in:]
    verdict = pool("4x4", runs, 1, RULES).verdict

    assert verdict is not None
    assert (verdict.label, len(verdict.odd_boots), verdict.other_boots) == (word, slow_in, 24 - slow_in)
    if word is Label.EQUIVALENT:
        assert verdict.unseen == pytest.approx(stats.beta.ppf(0.95, 2, 23))


def test_what_varies_is_what_surrounds_the_vm(runs: dict[str, LoadedRun]) -> None:
    """Hosts are listed; what the cells took is not, though no two runs agree in it."""
    names = ("slower", "slower too", "slower as well")
    took = [
        replace(run, attempts=tuple(replace(one, timings={"measure": took}) for one in run.attempts))
        for took, run in enumerate(map(runs.__getitem__, names), start=1)
    ]
    found = pool_runs(took)

    assert list(found.varies) == ["Host, Name"]
    assert "esx02 (" in as_text(found)


def test_a_run_without_enough_boots_is_left_out_and_named(runs: dict[str, LoadedRun]) -> None:
    """Two of three have verdicts: no summary, and the reason."""
    found = pooled(runs, "slower", "slower too", "few")
    document = json.loads(as_json(found))

    assert [unit.left_out for unit in found.units] == ["", "", "no arm has the boots that a verdict needs"]
    assert {arm["ratio"] for arm in document["arms"]} == {None}
    assert {arm["runs"] for arm in document["arms"]} == {2}
    assert "no summary, 2 of 3 VMs" in " ".join(as_text(found).split())


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("slower", "slower too"), "2 VMs in all: .* needs 3"),
        (("slower", "slower", "slower too"), "named twice"),
        (("slower", "slower too", "hardware"), r"study\.source: the lab, scenario paper -> hardware"),
        (("slower", "slower too", "two sizes"), r"study\.sizes"),
    ],
)
def test_what_cannot_be_pooled_is_refused(
    runs: dict[str, LoadedRun], names: tuple[str, ...], said: str
) -> None:
    """Too few, one twice, and what must agree."""
    with pytest.raises(InputError, match=said) as caught:
        pooled(runs, *names)
    assert caught.value.fix


def test_the_command_prints_both_formats(runs: dict[str, LoadedRun], store: Store) -> None:
    """The same verdict as text and as JSON."""
    names = [runs[name].run.name for name in ("slower", "slower too", "slower as well")]
    arguments = ["compare", *names, "--store", f"sqlite:///{Path(str(store.place))}"]
    shown = CliRunner().invoke(app, arguments)
    document = json.loads(CliRunner().invoke(app, [*arguments, "--format", "json"]).stdout)
    slowed = next(arm for arm in document["arms"] if arm["arm"] == "4x4")

    assert shown.exit_code == 0
    assert "4x4: over runs slower by" in shown.stdout
    assert (slowed["verdict"], slowed["runs"], len(slowed["each"])) == ("slower", 3, 3)


def test_an_arm_that_left_after_four_boots_counts(runs: dict[str, LoadedRun]) -> None:
    """Without such arms, only runs in which an arm was hard to decide would be summarised."""
    found = pooled(runs, "left 1", "left 2", "left 3")
    (arm,) = (arm for arm in json.loads(as_json(found))["arms"] if arm["arm"] == "4x4")

    assert (arm["runs"], arm["boots"], arm["agreement"]) == (3, 12, "slower in all 3")
    assert all(each["unadjusted_95"] is None for each in arm["each"])
    assert as_text(found).count(f"{found.units[0].name} ") == len(found.arms)
