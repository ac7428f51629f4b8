"""A run whose workload declares a figure of its own, in every output."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any, Literal

import pytest

from tests.report.build import ARMS, Load, Story, noisy
from tests.report.calls import Calls, calls_text, dict_of_kinds
from tests.report.pages import page_text
from vnuma.analysis.records import NotEvaluated
from vnuma.domain.study.study import Study
from vnuma.errors import InputError
from vnuma.report.charts.pictures import pictures
from vnuma.report.comparison.two_runs import parse_condition
from vnuma.report.export.results import Results, as_json
from vnuma.report.model.model import LoadedRun
from vnuma.report.page.page import verdict_symbol, vm_parts
from vnuma.report.published.published_comparison import PublishedRow, published_rows, to_reference
from vnuma.report.tables.csv_export import TABLES
from vnuma.report.tables.secondary import named_figures, waits_grids
from vnuma.report.terminal.run_text import as_text


@pytest.fixture
def measured(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load runs of the workload by throughput."""
    monkeypatch.setitem(dict_of_kinds(), "calls", Calls)
    return loaded


@pytest.fixture
def calls(measured: Load) -> LoadedRun:
    """A run of which 16x1 gives 3.6% more."""
    return measured(Story(text=calls_text(), ms=noisy()))


@pytest.fixture
def document(calls: LoadedRun) -> dict[str, Any]:
    """Its JSON document, which keeps the schema."""
    text = as_json(calls)
    Results.model_validate_json(text)
    found: dict[str, Any] = json.loads(text)
    return found


def falling(label: str, block: int, size: int, form: str) -> float:
    """Half as much at 1,000 connections as at 500, in every boot."""
    return noisy()(label, block, 500, form) * (500 / size)


def test_scaling_is_drawn_with_a_line_an_arm(calls: LoadedRun) -> None:
    """Each line is named by its mark, every load is on the axis, and the rates start at zero."""
    drawn = dict(pictures(calls))["scaling-1"]
    texts = set(re.findall(r"<text[^>]*>([^<]*)</text>", drawn))

    assert {*ARMS, "500", "1,000", "0", "connections", "calls/s, higher is better"} <= texts
    assert len(vm_parts(calls)[0]["scaling_charts"]) == 1


def test_passes_are_not_called_boots(measured: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is repeated has one name in every figure's words; only what is said of a VM speaks of boots."""
    monkeypatch.setattr(Study, "replicate", "pass")
    gone = frozenset(("8x2", block) for block in range(1, 7))
    run = measured(Story(text=calls_text("passes"), ms=falling, given_up=gone))
    parts = vm_parts(run)[0]
    shown = [as_text(run), TABLES["results"].of(run), TABLES["figures"].of(run)]
    pairs = (*parts["forms"][0]["strips"], parts["scaling_charts"][0])
    shown += [figure.words for pair in pairs for figure in pair]
    shown += [row.label for plots in parts["forms"][0]["by_size"] for row in plots.rows]
    shown += [part.partition("</section>")[0] for part in page_text(run).split("<section")[1:]]

    of_a_vm = ("topology", "methods", "configuration", "how-far", "study", "not-counted")
    for text in shown:
        if not any(f'id="vm1-{name}"' in text[:60] for name in of_a_vm):
            words = re.sub(r"<[^>]*>|n_boots|too few boots", " ", text)
            assert not re.search(r"\bboots?\b", words, re.IGNORECASE), words
    assert len(re.findall(r"no valid pass|pass medians", as_text(run))) > 1


def test_the_page_marks_faster_by_where_the_figure_went(calls: LoadedRun, measured: Load) -> None:
    """More calls point up, longer times too: faster points up in one and slower in the other."""
    found = [run.result.primary[0].arms[-1].verdict for run in (calls, measured(Story()))]

    assert [(str(verdict.label), verdict_symbol(verdict)) for verdict in found] == [
        *(("faster", "▲"), ("slower", "▲"))
    ]


def test_json_and_csv_have_the_figure_under_neutral_names(calls: LoadedRun, document: dict[str, Any]) -> None:
    """`median` holds the figure, `median_ms` nothing: the unit is not ms, and the reason says so."""
    analysis = document["analyses"][0]
    size = analysis["sizes"][0]["arms"][1]
    row = next(csv.DictReader(io.StringIO(TABLES["results"].of(calls))))

    assert document["study"]["size_word"] == "connections"
    assert [analysis[key] for key in ("metric", "metric_name", "unit", "better")] == [
        *("value", "throughput", "calls/s", "higher")
    ]
    assert (size["median_ms"], size["reason"]) == (None, "the unit is calls/s, not ms")
    assert (row["median_ms"], row["unit"], row["better"]) == ("", "calls/s", "higher")
    assert size["median"] > 0
    assert float(row["median"]) > 0


def test_published_figures_and_ratios_are_next_to_ours(document: dict[str, Any]) -> None:
    """A figure at its size in the unit; a ratio over all sizes, with our interval.

    2.004 against a reference of 2 is 1.002; our own ratio at that size is next to it.
    """
    rows = document["published"]["rows"]
    two = next(row for row in rows if row["arm"] == "2x8")
    ours = next(arm for arm in document["analyses"][0]["sizes"][0]["arms"] if arm["arm"] == "2x8")

    assert [(row["size"], row["arm"], row["published"]) for row in rows] == [
        *((500, "1x16", 4900), (500, "16x1", 5000), (500, "2x8", None)),
        *((1000, "1x16", 40000), (1000, "16x1", 10000)),
        *((None, "4x4", None), (None, "8x2", None)),
    ]
    assert {row["unit"] for row in rows} == {"calls/s"}
    assert rows[1]["published_ratio"] == pytest.approx(5000 / 4900)
    assert rows[-1]["published_is"] == "below one boot's range"
    assert two["published_ratio"] == pytest.approx(1.002)
    assert (two["measured"], two["ratio"], two["reason"]) == (
        *(ours["median"], ours["ratio"]),
        "only a ratio was published",
    )
    assert to_reference({"a": 2.0, "b": 3.0}, "b") == {"a": pytest.approx(2 / 3), "b": 1.0}


def at_1000(calls: LoadedRun, *bounded: str) -> dict[str, PublishedRow]:
    """The rows at 1,000 connections, were the published figures of these arms lower bounds."""
    assert calls.study.published is not None
    published = calls.study.published.model_copy(update={"lower_bounds": {"seek": {1000: list(bounded)}}})
    study = calls.study.model_copy(update={"published": published})
    return {row.arm: row for row in published_rows(calls.result.primary[0], study) if row.size == 1000}


def test_a_lower_bound_is_no_figure_that_ours_could_miss(calls: LoadedRun) -> None:
    """40,000 or more for the reference: a quarter at most, below ours. Two of them bound no ratio."""
    one = at_1000(calls, "1x16")

    assert (one["1x16"].their_figure, one["16x1"].their_difference) == ("≥ 40,000", "≤ -75.0%")
    assert (one["16x1"].bound, one["16x1"].where) == ("at most", "below one boot's range")
    assert at_1000(calls, "1x16", "16x1")["16x1"].where == "not comparable"


@pytest.mark.parametrize(
    ("bound", "ratio", "where"),
    [
        ("at most", 0.9, "below one boot's range"),
        ("at most", 1.0, "a bound that ours keeps"),
        ("at most", 1.1, "a bound that ours keeps"),
        ("at least", 0.9, "a bound that ours keeps"),
        ("at least", 1.1, "above one boot's range"),
        (None, 1.1, "above one boot's range"),
    ],
)
def test_a_bound_is_contradicted_from_one_side_alone(
    calls: LoadedRun, bound: Literal["at most", "at least"] | None, ratio: float, where: str
) -> None:
    """Our interval is about 1: only a bound that excludes all of it is outside."""
    arm = next(arm for arm in calls.result.primary[0].arms if arm.arm == "2x8")
    row = PublishedRow(*("seek", 500, "2x8", "calls/s", "boot", None, None, ratio, arm.verdict), bound=bound)

    assert row.where == where


@pytest.mark.parametrize("width", [60, 80])
def test_other_figures_fit_the_terminal(calls: LoadedRun, width: int) -> None:
    """As a table or as lines, each arm's median is there for each size."""
    text = as_text(calls, width)

    assert max(map(len, text.splitlines())) <= width
    assert len(re.findall(r"\b4\.8\d*", text)) >= 2
    assert re.search(r"^  500 2x8: 4\.8", as_text(calls, 40), re.MULTILINE)


def test_other_figures_have_unit_direction_and_a_published_ratio(measured: Load) -> None:
    """Median by arm, size and form; every arm is in it once. CSV has a line for each."""
    published = "  figure_ratios: {seek: {spins: {1x16: 1, 16x1: 59.1}}}\n"
    run = measured(Story(text=calls_text() + published, ms=noisy()))
    figures = json.loads(as_json(run))["figures"]
    arms = figures[0]["arms"]
    lines = list(csv.DictReader(io.StringIO(TABLES["figures"].of(run))))
    told = {
        (str(item["size"]), arm["arm"]): (str(arm["boots"]), arm["median"])
        for item in figures
        for arm in item["arms"]
    }

    assert [(one["size"], one["name"], one["unit"], one["better"]) for one in figures] == [
        *((500, "spins", "per call", "lower"), (1000, "spins", "per call", "lower"))
    ]
    assert {arm["arm"]: arm["boots"] for arm in arms} == {"1x16": 12, **dict.fromkeys(ARMS[1:], 6)}
    assert arms[0]["median"] == pytest.approx(4.84, rel=0.01)
    assert arms[-1]["ratio"] == pytest.approx(arms[-1]["median"] / arms[0]["median"])
    assert [arm["published_ratio"] for arm in arms] == [1, None, None, None, 59.1]
    assert {(r["size"], r["arm"]): (r["n_boots"], float(r["median"])) for r in lines} == told
    assert {(r["figure"], r["unit"], r["better"]) for r in lines} == {("spins", "per call", "lower")}
    assert re.search(r"published +x1 +not known .*x59\.1", as_text(run))


@pytest.mark.parametrize(("condition", "state"), [("faster>2%", "met"), ("slower>2%", "not met")])
def test_a_condition_goes_by_the_direction(calls: LoadedRun, condition: str, state: str) -> None:
    """16x1 gives 3.6% more: faster by more than 2%, and never slower."""
    best = next(arm for arm in calls.result.primary[0].arms if arm.arm == "16x1")

    assert parse_condition(condition).of(best.verdict) == state


def test_a_bound_without_its_figure_is_refused(loaded: Load) -> None:
    """A misspelt arm is not silently ignored."""
    head, _, _ = Story().text.partition("published:")
    published = "{title: X, elapsed_ms: {500: {1x16: 9}}, lower_bounds: {client: {500: [1x16, 2x9]}}}"

    with pytest.raises(InputError, match=r"lower_bounds names 2x9 at client, 500"):
        loaded(Story(text=f"{head}published: {published}\n"))


@pytest.mark.parametrize(
    ("blocks", "negative", "reason"), [(6, (1000,), None), (4, (), "4 of 6 boots")], ids=["shown", "too few"]
)
def test_a_throughput_that_falls_with_its_load_is_marked_where_boots_show_it(
    measured: Load, blocks: int, negative: tuple[int, ...], reason: str | None
) -> None:
    """Over sizes in each arm; four boots are too few for the mark, however large the loss."""
    run = measured(Story(text=calls_text(blocks=blocks), ms=falling))
    curves = Results.model_validate_json(as_json(run)).scaling
    told = {(one.over, one.peak, one.lower, one.negative) for one in curves if one.at != "1x16"}

    assert {curve.at for curve in curves} == set(ARMS)
    assert told == {("connections", 500, (1000,), negative)}
    assert {one.reason or None for one in curves if one.at == "2x8"} == {reason}
    marks = re.findall(r"(negative scaling|lower) at 1,000 connections", " ".join(as_text(run).split()))
    assert marks[-1:] == (["negative scaling"] if negative else ["lower"])


def test_growth_waits_and_other_figures_are_tables_for_files(calls: LoadedRun) -> None:
    """Each with unit, direction and whether it is simulated; growth is per doubling of connections."""
    ((name, figures),) = named_figures(calls, "sql16")
    of_all, by_arm = waits_grids(calls, "sql16")
    growth = calls.result.primary[0].growth

    assert (name, figures.headings) == ("seek-spins", ("connections", *ARMS))
    assert [table.caption.startswith("SIMULATED") for table in (of_all, by_arm)] == [True] * 2
    assert re.findall(r": (\w+), (.+), (\w+) is better;", figures.caption) == [("spins", "per call", "lower")]
    assert (by_arm.headings[1:], by_arm.rows[0][0]) == (ARMS, "ASYNC_NETWORK_IO")
    assert not isinstance(growth, NotEvaluated)
    assert {item.doubled for item in growth} == {"connections"}
