"""Text that a drawing cannot hold costs neither the process nor the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.report.build import Story, study_text
from vnuma.report.charts.pictures import pictures, write_picture
from vnuma.report.charts.svg import draw, layer, name_of, quantity
from vnuma.report.model.model import LoadedRun


def test_a_control_character_does_not_end_the_process() -> None:
    """vl-convert aborts for one: it is drawn as what it is called."""
    chart = layer([{"arm": "2x8\x1b", "ms": 1}], {"type": "point"}, x=quantity("ms"), y=name_of("arm"))
    assert draw(chart, key="k", title="t", words="w").svg.count("2x8\\x1b") == 1


def test_a_title_may_look_like_a_colour(loaded: Callable[[Story], LoadedRun]) -> None:
    """`var(--x)` is a name of the style sheet's kind; a title may have it all the same."""
    text = study_text(sizes="500", forms="client").replace("Dakic 2019, Table 1", "var(--x)")
    run = loaded(Story(text=text))
    assert [name for name, svg in pictures(run) if svg.count("var(--x)")] != []


def test_a_chart_that_cannot_be_drawn_says_so_in_its_place() -> None:
    """Its title and words are there; the next chart is drawn."""
    points = layer([{"ms": 1}], {"type": "point"}, x=quantity("ms"))
    broken = {**points, "transform": [{"calculate": "no such expression", "as": "x"}]}

    shown = [draw(one, key="k", title="its title", words="w").svg for one in (broken, points)]
    assert [(svg.count("could not be drawn"), svg.count("its title") > 0) for svg in shown] == [
        (1, True),
        (0, True),
    ]


def test_a_picture_that_ends_its_process_costs_that_picture(tmp_path: Path) -> None:
    """vl-convert aborts for its size: the others are written, and a text says which is missing and why."""
    for name, side in (("before", 10), ("huge", 1_000_000), ("after", 10)):
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}"></svg>'
        write_picture(tmp_path, name, svg)

    written = {path.name for path in tmp_path.iterdir()}
    assert {"before.png", "before.pdf", "after.png", "after.pdf", "huge.svg", "huge.png.txt"} <= written
    assert not (tmp_path / "huge.png").exists()
