"""Text that a drawing cannot hold costs neither the process nor the report."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt

from tests.report.build import Story, study_text
from vnuma.report.charts.pictures import pictures
from vnuma.report.charts.svg import draw
from vnuma.report.model.model import LoadedRun


def test_a_control_character_does_not_end_the_process() -> None:
    """vl-convert aborts for one: it is drawn as what it is called."""
    data = alt.InlineData(values=[{"arm": "2x8\x1b", "ms": 1}])
    chart = alt.layer(alt.Chart(data).mark_point().encode(x="ms:Q", y="arm:N"))
    assert "2x8\\x1b" in draw(chart, key="k", title="t", words="w").svg


def test_a_title_may_look_like_a_colour(loaded: Callable[[Story], LoadedRun]) -> None:
    """`var(--x)` is a name of the style sheet's kind; a title may have it all the same."""
    text = study_text(sizes="500", forms="client").replace("Dakic 2019, Table 1", "var(--x)")
    drawn = list(pictures(loaded(Story(text=text))))
    assert any("var(--x)" in picture.svg for picture in drawn)
