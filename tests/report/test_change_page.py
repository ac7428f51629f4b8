"""The page for a change board, as `vnuma plan --document` writes it."""

from __future__ import annotations

from dataclasses import replace

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

    for place in ("title", "name", "path", "host", "what", "fix", "why", "file"):
        assert f"&lt;script&gt;{place}&lt;/script&gt;" in text, place
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")


def test_the_plan_is_on_the_page() -> None:
    """What is changed and restored, what blocks it, each arm, the order and the ticket."""
    text = " ".join(page().split())

    assert "<code>numCoresPerSocket</code></th><td>4</td><td>16</td>" in text
    assert '<div class="alarm"><dt>blocks, P00</dt>' in text
    assert "unseen" not in text
    assert '<th scope="row">1x16 (reference)</th><td>1 vNUMA node</td>' in text
    assert "<dt>Change ticket</dt><dd>CHG7</dd>" in text
    assert "<dt>Blocked by</dt><dd>P00</dd>" in text
    assert "<li>Block 6: " in text
    assert "16 power-cycles, about 60 min." in text


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

    text = " ".join(page_text(planned, "file", [plan], Permit(ticket="CHG7")).split())

    assert "<td>1 vNUMA node</td><td>low, else 4: sources disagree</td>" in text


def test_simulated_is_said_in_title_head_and_foot() -> None:
    """A plan made on the lab is not mistaken for one of real machines."""
    text = page(simulated="paper")

    assert "<title>SIMULATED: " in text
    assert text.count("not measured on hardware") == 2
