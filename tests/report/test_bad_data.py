"""Data that lack something: every output says what is missing, and none makes a figure up."""

from __future__ import annotations

import re

import pytest

from tests.report.build import ARMS, LABELS, Load, Lost, Story, noisy, study_text
from vnuma.report.charts.pictures import pictures
from vnuma.report.export.results import document
from vnuma.report.page.page import vm_parts
from vnuma.report.page.render import page_text
from vnuma.report.tables.paper_table import paper_table
from vnuma.report.terminal.run_text import as_text
from vnuma.store.rows import Outcome

SMALL = study_text(sizes="500", forms="client")
ALL = frozenset((label, block) for label in LABELS for block in range(1, 7))
REFERENCE = frozenset(item for item in ALL if item[0].startswith("1x16"))
INVALID = {cell: (Lost(Outcome.INVALID, "topology_mismatch", "1 vNUMA node, not 2"),) for cell in ALL}


@pytest.mark.parametrize(
    ("story", "caution"),
    [
        (Story(text=SMALL, given_up=REFERENCE), "reference_missing"),
        (Story(text=SMALL, given_up=ALL, lost=INVALID), "no_data"),
        (Story(text=study_text(sizes="500", forms="client", blocks=1)), "too_few_boots"),
    ],
    ids=["no reference", "all cells invalid", "one block"],
)
def test_no_output_makes_a_figure_up(loaded: Load, story: Story, caution: str) -> None:
    """Terminal, page, JSON and pictures; no verdict that needs data, no interval, no recommendation."""
    run = loaded(story)
    found = document(run)
    shown = [as_text(run), page_text(run), *dict(pictures(run)).values()]

    assert {caution} <= {item["id"] for item in found["warnings"]}
    assert found["recommended"][0]["arms"] == []
    assert {arm["verdict"] for arm in found["arms"]} <= {"too few boots"}
    assert all(arm["ratio"] is None or arm["provisional"] for arm in found["arms"])
    assert [text for text in shown if re.search(r"\bnan\b", text, re.IGNORECASE)] == []


def test_a_size_without_a_time_makes_its_cell_missing(loaded: Load) -> None:
    """0 ms at one size is too short for the clock: the cell is left out whole, with its reason."""
    plain = noisy()

    def ms(label: str, block: int, size: int, form: str) -> float:
        return 0.0 if (label, block, size) == ("4x4", 2, 500) else plain(label, block, size, form)

    run = loaded(Story(text=study_text(forms="client"), ms=ms))
    (analysis,) = run.result.primary
    (missing,) = analysis.missing
    (part,) = vm_parts(run)

    assert (missing.label, missing.block) == ("4x4", 2)
    assert part["missing"] == [f"4x4 in block 2: {missing.outcome}, {missing.reason}"]
    assert {arm.arm: arm.contrast.boots for arm in analysis.arms} == {
        **dict.fromkeys(ARMS[1:], 6),
        "4x4": 5,
    }


def test_tables_of_an_arm_without_boots_have_no_number(loaded: Load) -> None:
    """A dash where nothing was measured."""
    run = loaded(Story(text=SMALL, given_up=frozenset(("8x2", block) for block in range(1, 7))))
    table = paper_table(run, run.result.primary[0])
    column = table.headings.index("8x2")

    assert {row[column] for row in table.rows} <= {"-", ""}
