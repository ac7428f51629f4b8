"""A run whose workload declares a figure of its own, in every output."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Literal

import pytest

from tests.report.build import Story, noisy
from tests.report.calls import Calls, calls_text, dict_of_kinds
from tests.report.pages import page_text, text_of
from vnuma.domain.study.study import Study
from vnuma.errors import InputError
from vnuma.report.charts.pictures import pictures
from vnuma.report.comparison.two_runs import parse_condition
from vnuma.report.export.results import Results, as_json
from vnuma.report.model.grid import as_latex
from vnuma.report.model.model import LoadedRun
from vnuma.report.page.page import vm_parts
from vnuma.report.published.published_comparison import PublishedRow, published_rows, to_reference
from vnuma.report.tables.csv_export import TABLES
from vnuma.report.tables.secondary import named_figures, waits_grids
from vnuma.report.terminal.run_text import as_text

Load = Callable[[Story], LoadedRun]


@pytest.fixture
def calls(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> LoadedRun:
    """A run of the workload: by throughput, 16x1 gives 3.6% more."""
    monkeypatch.setitem(dict_of_kinds(), "calls", Calls)
    return loaded(Story(text=calls_text(), ms=noisy()))


def test_the_terminal_says_unit_and_direction(calls: LoadedRun) -> None:
    """Name, unit, n and direction; sizes by their own word; faster is more."""
    text = as_text(calls)

    assert "Throughput, calls/s, median of boot medians, higher is better" in text
    assert "6 boots an arm (12 for 1x16)" in text
    assert "connections" in text
    assert "  calls/s " in text
    assert re.search(r"16x1  faster by 3\.\d%", text)


def test_scaling_is_drawn_with_a_line_an_arm(calls: LoadedRun) -> None:
    """Each line is named by its mark, every load is on the axis, and the rates start at zero."""
    (drawn,) = [picture for picture in pictures(calls) if picture.name == "scaling-1"]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn.svg)

    assert {"1x16", "2x8", "4x4", "8x2", "16x1"} <= set(texts)
    assert {"500", "1,000", "0", "connections", "calls/s, higher is better"} <= set(texts)
    assert 'id="vm1-scaling-wide-seek-0-title"' in page_text(calls)


def test_passes_are_not_called_boots(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is repeated has one name in every figure's words; only what is said of a VM speaks of boots."""
    monkeypatch.setitem(dict_of_kinds(), "calls", Calls)
    monkeypatch.setattr(Study, "replicate", "pass")
    gone = frozenset(("8x2", block) for block in range(1, 7))
    run = loaded(Story(text=calls_text("passes"), ms=falling, given_up=gone))
    parts = vm_parts(run)[0]
    shown = [as_text(run), TABLES["results"].of(run), TABLES["figures"].of(run)]
    pairs = (*parts["forms"][0]["strips"], parts["scaling_charts"][0])
    shown += [figure.words for pair in pairs for figure in pair]
    shown += [row.label for plots in parts["forms"][0]["by_size"] for row in plots.rows]
    shown += [part.partition("</section>")[0] for part in page_text(run).split("<section")[1:]]

    of_a_vm = ("topology", "methods", "configuration", "how-far", "study", "lost")
    for text in shown:
        if not any(f'id="vm1-{name}"' in text[:60] for name in of_a_vm):
            words = re.sub(r"<[^>]*>|n_boots|too few boots", " ", text)
            assert not re.search(r"\bboots?\b", words, re.IGNORECASE), words
    assert "no valid pass" in as_text(run)
    assert "median of pass medians" in as_text(run)


def test_the_page_marks_faster_by_where_the_figure_went(calls: LoadedRun, loaded: Load) -> None:
    """More calls point up, longer times too: faster points up in one and down in the other."""
    assert "▲ faster by 3." in text_of(page_text(calls))
    assert "▲ slower by 3." in text_of(page_text(loaded(Story())))


def test_json_and_csv_have_the_figure_under_neutral_names(calls: LoadedRun) -> None:
    """`median` holds the figure, `median_ms` nothing: the unit is not ms, and the reason says so."""
    document = json.loads(as_json(calls))
    Results.model_validate(document)
    size = document["analyses"][0]["sizes"][0]["arms"][1]
    row = next(csv.DictReader(io.StringIO(TABLES["results"].of(calls))))

    assert document["study"]["size_word"] == "connections"
    assert [document["analyses"][0][key] for key in ("metric", "metric_name", "unit", "better")] == [
        *("value", "throughput", "calls/s", "higher")
    ]
    assert size["median"] > 0
    assert (size["median_ms"], size["reason"]) == (None, "the unit is calls/s, not ms")
    assert float(row["median"]) > 0
    assert (row["median_ms"], row["unit"], row["better"]) == ("", "calls/s", "higher")


def test_published_figures_and_ratios_are_next_to_ours(calls: LoadedRun) -> None:
    """A figure at its size in the unit; a ratio over all sizes, with our interval."""
    rows = json.loads(as_json(calls))["published"]["rows"]
    text = text_of(page_text(calls))

    assert [(row["size"], row["arm"], row["published"]) for row in rows] == [
        *((500, "1x16", 4900), (500, "16x1", 5000), (500, "2x8", None)),
        *((1000, "1x16", 40000), (1000, "16x1", 10000)),
        *((None, "4x4", None), (None, "8x2", None)),
    ]
    assert rows[1]["published_ratio"] == pytest.approx(5000 / 4900)
    assert rows[1]["unit"] == "calls/s"
    assert rows[-1]["published_is"] == "below one boot's range"
    assert "seek all sizes 8x2 ratio only all sizes calls/s -50.0%" in text
    assert re.search(r"all sizes +8x2 .*-50\.0 .*below", as_text(calls))


def test_a_ratio_is_read_to_the_studys_reference_at_the_size_it_was_published_for(calls: LoadedRun) -> None:
    """2.004 against a reference of 2 is 1.002; our own ratio at that size is next to it."""
    document = json.loads(as_json(calls))
    (row,) = (row for row in document["published"]["rows"] if row["arm"] == "2x8" and row["size"] == 500)
    (ours,) = (arm for arm in document["analyses"][0]["sizes"][0]["arms"] if arm["arm"] == "2x8")

    assert row["published_ratio"] == pytest.approx(1.002)
    assert (row["measured"], row["ratio"]) == (ours["median"], ours["ratio"])
    assert row["reason"] == "only a ratio was published"
    assert to_reference({"a": 2.0, "b": 3.0}, "b") == {"a": pytest.approx(2 / 3), "b": 1.0}


def two_bounds(calls: LoadedRun, arm: str) -> PublishedRow:
    """The arm's row at 1,000 connections, were its published figure a lower bound as the reference's is."""
    assert calls.study.published is not None
    bounds = {"seek": {1000: [calls.study.reference, arm]}}
    published = calls.study.published.model_copy(update={"lower_bounds": bounds})
    study = calls.study.model_copy(update={"published": published})
    rows = published_rows(calls.result.primary[0], study)
    return next(row for row in rows if (row.size, row.arm) == (1000, arm))


def test_a_lower_bound_is_no_figure_that_ours_could_miss(calls: LoadedRun) -> None:
    """40,000 or more for the reference: a quarter at most, below ours. Two of them bound no ratio."""
    rows = {(row["size"], row["arm"]): row for row in json.loads(as_json(calls))["published"]["rows"]}
    shown = text_of(page_text(calls))

    assert rows[1000, "16x1"]["published_bound"] == "at most"
    assert rows[1000, "16x1"]["published_is"] == "below one boot's range"
    assert two_bounds(calls, "16x1").where == "not comparable"
    assert "≥ 40,000" in shown
    assert "≤ -75.0%" in shown
    assert "outside is not evidence of a difference" in shown
    assert "outside is not evidence of a difference" in " ".join(as_text(calls).split())


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


def test_other_figures_have_a_table_with_unit_and_direction(calls: LoadedRun) -> None:
    """Median by arm, size and form; every arm is in it once."""
    document = json.loads(as_json(calls))
    found = document["figures"][0]

    assert [item["size"] for item in document["figures"]] == [500, 1000]
    assert (found["name"], found["unit"], found["better"]) == ("spins", "per call", "lower")
    assert [(arm["arm"], arm["boots"]) for arm in found["arms"]][:2] == [("1x16", 12), ("2x8", 6)]
    assert found["arms"][0]["median"] == pytest.approx(4.84, rel=0.01)
    assert "spins, per call, lower is better" in as_text(calls)
    assert max(map(len, as_text(calls).splitlines())) <= 80
    assert max(map(len, as_text(calls, width=60).splitlines())) <= 60
    assert "  500 2x8: 4.8" in as_text(calls, width=40)
    assert "spins, per call, lower is better" in text_of(page_text(calls))


def test_published_ratios_of_other_figures_stand_below_ours(
    loaded: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arm by arm, in terminal, page and document; an arm without a published one says so."""
    monkeypatch.setitem(dict_of_kinds(), "calls", Calls)
    published = "  figure_ratios: {seek: {spins: {1x16: 1, 16x1: 59.1}}}\n"
    calls = loaded(Story(text=calls_text() + published, ms=noisy()))
    found = json.loads(as_json(calls))["figures"][0]["arms"]
    ours = {arm["arm"]: arm["ratio"] for arm in found}

    assert ours["16x1"] == pytest.approx(found[-1]["median"] / found[0]["median"])
    assert {arm["arm"]: arm["published_ratio"] for arm in found if arm["published_ratio"]} == {
        "1x16": 1,
        "16x1": 59.1,
    }
    assert re.search(r"published +x1 +not known .*x59\.1", as_text(calls))
    assert "ratio x1 " in text_of(page_text(calls))
    assert "published x1 not known" in text_of(page_text(calls))


def test_other_figures_as_csv_are_those_of_the_document(calls: LoadedRun) -> None:
    """A line for each size and arm, with unit, direction and the number of boots."""
    found = list(csv.DictReader(io.StringIO(TABLES["figures"].of(calls))))
    told = {
        (str(item["size"]), arm["arm"]): (str(arm["boots"]), arm["median"])
        for item in json.loads(as_json(calls))["figures"]
        for arm in item["arms"]
    }

    assert {(r["size"], r["arm"]): (r["n_boots"], float(r["median"])) for r in found} == told
    assert {(r["figure"], r["unit"], r["better"]) for r in found} == {("spins", "per call", "lower")}


def test_the_statistics_page_of_growth_counts_connections(calls: LoadedRun) -> None:
    """Growth is shown per doubling of what the sizes count."""
    assert "points per doubling of connections" in text_of(page_text(calls))


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


def test_what_the_workload_verified_is_shown_escaped_and_long_ones_folded(loaded: Load) -> None:
    """Each fact with the boots that had it; nothing in it is markup."""
    verified = {"placement": {"node": "<b>1</b>", "pages": {"0": 7}}, "log": "line; " * 60}
    page = page_text(loaded(Story(verified=verified)))
    section = page[page.index("What this workload verified</h2>") :].partition("</section>")[0]

    assert "node: &lt;b&gt;1&lt;/b&gt;; pages: 0: 7 (36 boots of 1x16," in section
    assert section.count("<details>") == 1
    assert "<summary>1 value</summary>" in section


def falling(label: str, block: int, size: int, form: str) -> float:
    """Half as much at 1,000 connections as at 500, in every boot."""
    return noisy()(label, block, 500, form) * (500 / size)


def test_a_throughput_that_falls_with_its_load_is_marked(
    loaded: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over sizes in each arm, in every output; arms of as many vCPUs make no curve over them."""
    monkeypatch.setitem(dict_of_kinds(), "calls", Calls)
    run = loaded(Story(text=calls_text(), ms=falling))
    document = Results.model_validate_json(as_json(run))

    text = " ".join(as_text(run).split())
    assert "seek, over connections, 1x16: peaks at 500 connections" in text
    assert "negative scaling at 1,000 connections: up to 50% less" in text
    assert "negative scaling at 1,000 connections" in text_of(page_text(run))
    assert {curve.over for curve in document.scaling} == {"connections"}
    assert all(curve.negative == (1000,) and curve.peak == 500 for curve in document.scaling)
    assert "each boot runs its loads in the order of the study" in text_of(page_text(run))


def test_a_loss_that_boots_do_not_show_is_reported_and_not_marked(
    loaded: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four boots are too few for the mark, however large the loss; the reason is shown."""
    monkeypatch.setitem(dict_of_kinds(), "calls", Calls)
    run = loaded(Story(text=calls_text(blocks=4), ms=falling))
    document = Results.model_validate_json(as_json(run))

    text = " ".join(as_text(run).split())
    assert "2x8: peaks at 500 connections" in text
    assert "lower at 1,000 connections: up to 50% less, not shown: 4 of 6 boots" in text
    (curve,) = (curve for curve in document.scaling if curve.at == "2x8")
    assert (curve.lower, curve.negative, curve.reason) == ((1000,), (), "4 of 6 boots")


def test_other_figures_and_waits_by_arm_are_tables_for_files(calls: LoadedRun) -> None:
    """Each with unit, direction and whether it is simulated, in the forms that papers take."""
    ((name, figures),) = named_figures(calls, "sql16")
    of_all, by_arm = waits_grids(calls, "sql16")

    assert name == "seek-spins"
    assert "spins, per call, lower is better" in figures.caption
    assert figures.headings == ("connections", "1x16", "2x8", "4x4", "8x2", "16x1")
    assert of_all.caption.startswith("SIMULATED")
    assert "waits, form seek, by arm; % of elapsed time" in by_arm.caption
    assert by_arm.headings[1:] == figures.headings[1:]
    assert by_arm.rows[0][0] == "ASYNC_NETWORK_IO"
    assert "\\toprule" in as_latex(by_arm)
