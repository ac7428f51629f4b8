"""The page for a change board, as `vnuma plan --document` writes it."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.report.pages import Outline
from tests.support.studies import plan_of, study
from vnuma.cli.plan_document import page_text
from vnuma.engine.preflight.findings import Finding, Permit
from vnuma.engine.preflight.plan import ArmPlan


def hostile(place: str) -> str:
    """A text that would run in a reader's browser if it became markup."""
    return f"<script>{place}</script>"


def page(simulated: str | None = None) -> str:
    """The page for a VM whose every free text is hostile, with one possible and one impossible arm."""
    planned = study(title=hostile("title"))
    known = plan_of(planned)
    assert known.shape
    shape = replace(
        known.shape,
        host=replace(known.shape.host, name=hostile("host")),
        arms=(known.shape.arms[0], ArmPlan(planned.labels[-1], impossible=hostile("why"))),
    )
    plan = replace(
        known,
        name=hostile("name"),
        path=hostile("path"),
        findings=(Finding.block("P00", hostile("what"), hostile("fix")), Finding("P99", "info", "unseen")),
        simulated=simulated,
        shape=shape,
    )
    return page_text(planned, hostile("file"), [plan], Permit(ticket="CHG7"))


def test_a_text_from_elsewhere_is_shown_and_never_becomes_markup() -> None:
    """Names, findings and studies come from elsewhere: none of them runs in a reader's browser."""
    text = page()
    outline = Outline(text)

    for place in ("title", "name", "path", "host", "what", "fix", "why", "file"):
        assert outline.text.count(hostile(place)) > 0, place
    assert outline.tags["script"] == 0
    assert outline.addresses == []


def test_the_plan_is_on_the_page() -> None:
    """What is changed and restored, what blocks it, each arm, the order and the ticket."""
    text = page()
    rows = Outline(text).rows
    facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", text))

    assert [row[:3] for row in rows if row[0] == "numCoresPerSocket"] == [["numCoresPerSocket", "4", "16"]]
    assert [row[1] for row in rows if row[0] == "1x16 (reference)"] == ["1 vNUMA node"]
    assert {name: facts[name] for name in ("Change ticket", "Blocked by")} == {
        "Change ticket": "CHG7",
        "Blocked by": "P00",
    }
    # P99 is a note: not for a change board.
    assert re.findall(r"<dt>(\w+), (P\d+)</dt>", text) == [("blocks", "P00")]
    assert re.findall(r"<li>Block (\d):", text) == [str(number) for number in range(1, 9)]


def test_an_unsure_prediction_has_its_other_reading_and_the_reason() -> None:
    """Low alone does not tell a change board what else the guest may see."""
    planned = study()
    known = plan_of(planned)
    assert known.shape
    (first, *others) = known.shape.arms
    assert first.prediction is not None
    unsure = replace(first.prediction, confidence="low", alternatives=(4,), because="sources disagree")
    arms = (replace(first, prediction=unsure), *others)
    plan = replace(known, shape=replace(known.shape, arms=arms))

    rows = Outline(page_text(planned, "file", [plan], Permit(ticket="CHG7"))).rows

    assert next(row[1:3] for row in rows if row[0] == "1x16 (reference)") == [
        *("1 vNUMA node", "low, else 4: sources disagree")
    ]


def test_simulated_is_said_in_title_head_and_foot() -> None:
    """A plan made on the lab is not mistaken for one of real machines."""
    marks = [
        [text.count(mark) for mark in ("<title>SIMULATED: ", "not measured on hardware")]
        for text in (page("paper"), page())
    ]

    assert marks == [[1, 2], [0, 0]]
