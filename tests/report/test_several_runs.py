"""Many runs, one answer: the run is the replicate, and what contradicts is said."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from tests.report.build import build, story, study_text
from tests.support.stores import new_store
from tests.unit.analysis.data import log_limits
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


CONTRADICT = "slower in 3, faster in 1: they contradict each other, and no single answer holds"
AGREEING = ("slower", "slower too", "slower as well")


def pooled(runs: dict[str, LoadedRun], *names: str) -> Pool:
    """Those of them together."""
    return pool_runs([runs[name] for name in names])


def arm_of(runs: dict[str, LoadedRun], *names: str, arm: str = "4x4") -> dict[str, Any]:
    """One arm of their summary, in the JSON document."""
    found: dict[str, Any] = next(
        one for one in json.loads(as_json(pooled(runs, *names)))["arms"] if one["arm"] == arm
    )
    return found


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
    assert log_limits(found.verdict.interval) == pytest.approx([expected.low, expected.high], abs=1e-12)
    assert log_limits(found.prediction)[1] == pytest.approx(np.mean(means) + wide, abs=1e-12)


def test_runs_that_a_coarse_clock_rounds_alike_keep_its_error() -> None:
    """Three runs read the same 2% in steps of as much: they agree, and do not show a difference."""
    rounded = 2 * 0.02**2 / 12
    run = Contrast("4x4", "4x4", 8, 0.02, None, None, (0.02,) * 8, rounded=rounded)
    found = pool("4x4", [run] * 3, 1, RULES)
    high = 0.02 + stats.t.ppf(0.975, 2) * math.sqrt(rounded)

    assert found.verdict is not None
    assert [log_limits(found.verdict.interval)[1], log_limits(found.prediction)[1]] == pytest.approx(
        [high] * 2
    )
    assert found.verdict.label is Label.UNDECIDED


def test_whether_runs_differ_is_welchs_f() -> None:
    """Against SciPy's f_oneway with unequal variances, runs of 6 to 12 blocks."""
    generator = np.random.default_rng(5)
    groups = [generator.normal(0.01 * i, 0.005 * (i + 1), n) for i, n in enumerate((6, 8, 12))]
    expected = stats.f_oneway(*groups, equal_var=False)
    found = heterogeneity([tuple(map(float, group)) for group in groups])

    assert found is not None
    assert (found.f, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)


@pytest.mark.parametrize(
    ("names", "answer"),
    [
        (AGREEING, ("slower", 3, 18, "slower in all 3")),
        ((*AGREEING, "faster"), ("undecided", 4, 24, CONTRADICT)),
        # Without arms that left after four boots, only runs in which an arm was hard to decide would count.
        (("left 1", "left 2", "left 3"), ("slower", 3, 12, "slower in all 3")),
        # Two of three have verdicts: no summary.
        (("slower", "slower too", "few"), (None, 2, 12, "slower in all 2")),
    ],
    ids=["agree", "contradict", "left early", "one without verdicts"],
)
def test_an_arm_of_many_runs_has_one_answer(
    runs: dict[str, LoadedRun], names: tuple[str, ...], answer: tuple[object, ...]
) -> None:
    """What contradicts has none."""
    arm = arm_of(runs, *names)

    assert tuple(arm[key] for key in ("verdict", "runs", "boots", "agreement")) == answer
    assert (arm["ratio"] is None) == (arm["verdict"] is None)


def test_runs_that_differ_by_more_than_chance_are_measured_for_it(runs: dict[str, LoadedRun]) -> None:
    """One more run may lie farther away than any interval of the mean; contradictions scatter most."""
    agree, apart = (
        {arm.arm: arm for arm in pooled(runs, *names).arms}["4x4"]
        for names in (AGREEING, (*AGREEING, "faster"))
    )

    assert log_limits(agree.prediction)[1] - log_limits(agree.prediction)[0] > 0.01
    assert apart.heterogeneity is not None
    assert apart.heterogeneity.sd > 0.02


def test_every_equivalent_states_what_could_have_gone_unseen(runs: dict[str, LoadedRun]) -> None:
    """In one VM 0 of 6 boots, over the runs 0 of 18."""
    arm = arm_of(runs, *AGREEING, arm="2x8")

    assert (arm["verdict"], {one["verdict"] for one in arm["each"]}) == ("equivalent", {"equivalent"})
    assert arm["unseen_share"] == pytest.approx(1 - 0.05 ** (1 / 18))
    assert [one["unseen_share"] for one in arm["each"]] == pytest.approx([1 - 0.05 ** (1 / 6)] * 3)


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
    took = [
        replace(run, attempts=tuple(replace(one, timings={"measure": took}) for one in run.attempts))
        for took, run in enumerate((runs[name] for name in AGREEING), start=1)
    ]
    found = pool_runs(took)

    assert {name: list(values) for name, values in found.varies.items()} == {
        "Host, Name": ["esx01", "esx02", "esx03"]
    }


def test_a_run_without_enough_boots_is_left_out_and_named(runs: dict[str, LoadedRun]) -> None:
    """With the reason; nor has an arm that left early an interval for one look alone."""
    left_out = [unit.left_out for unit in pooled(runs, "slower", "slower too", "few").units]
    each = arm_of(runs, "left 1", "left 2", "left 3")["each"]

    assert left_out == ["", "", "no arm has the boots that a verdict needs"]
    assert {one["unadjusted_95"] for one in each} == {None}


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
    """The same summary as text, with a row of each arm for each run, and as JSON."""
    names = [runs[name].run.name for name in AGREEING]
    arguments = ["compare", *names, "--store", f"sqlite:///{Path(str(store.place))}"]
    found = pooled(runs, *AGREEING)

    assert as_text(found).startswith("SIMULATED")
    assert [as_text(found).count(f"{unit.name} ") for unit in found.units] == [len(found.arms)] * 3
    assert CliRunner().invoke(app, arguments).stdout == as_text(found)
    assert CliRunner().invoke(app, [*arguments, "--format", "json"]).stdout == as_json(found)
