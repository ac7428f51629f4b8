"""A positive control in reports: a column of its own, no candidate, and loud when it shows nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.report.build import EFFECTS, Story, noisy, study_text
from vnuma.report.export.results import as_json
from vnuma.report.model.methods import methods
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import answer
from vnuma.report.page.render import page_text
from vnuma.report.terminal.run_text import as_text

TEXT = study_text(blocks=8, sizes="500", forms="client").replace("a_a: true", "a_a: true, control: remote")


def words(loaded: LoadedRun) -> str:
    """The first sentences of the page."""
    return "".join(text for text, _ in answer(loaded, loaded.result.primary[0]))


@pytest.mark.parametrize(("effect", "shown"), [(0.2, True), (0.0, False)])
def test_a_control_that_shows_nothing_is_at_the_top(
    loaded: Callable[[Story], LoadedRun], effect: float, shown: bool
) -> None:
    """It withholds equivalence and says so first, on page and terminal; a passed one is not a finding."""
    run = loaded(Story(text=TEXT, ms=noisy(0.002, {**EFFECTS, "1x16 (remote)": effect, "2x8": 0.0})))
    blind = "The positive control 1x16 (remote) was not found slower"

    top = " ".join(as_text(run).split("Elapsed time")[0].split())
    assert (blind in top) is not shown
    assert words(run).startswith(blind) is not shown
    assert (blind in " ".join(page_text(run).split())) is not shown
    assert bool(re.search(r"^2x8 +equivalent", as_text(run), re.MULTILINE)) is shown


def test_a_control_is_never_recommended(loaded: Callable[[Story], LoadedRun]) -> None:
    """Even if it were the fastest, since it is not a configuration. The answer does not name it."""
    run = loaded(Story(text=TEXT, ms=noisy(0.002, {**EFFECTS, "1x16 (remote)": -0.2})))

    assert "1x16 (remote)" not in run.result.primary[0].recommended
    assert "Use 1x16 (remote)" not in words(run)
    assert "the positive control, the tables were made under" in methods(
        run, run.vms[0], run.result.primary[0]
    )
    assert "1x16 (remote)" in as_json(run)
