"""What the rules say of themselves."""

from __future__ import annotations

import pytest

from tools.rules_doc import PAGE, page
from vnuma.checks.rules.catalogue import RULES, document, explain
from vnuma.errors import InputError


@pytest.mark.parametrize("rule_id", [rule.id for rule in RULES])
def test_an_explanation_fits_the_screen_and_names_its_source(rule_id: str) -> None:
    """At most 80 columns but for addresses; a source is always there."""
    text = explain(rule_id.lower())

    assert text.startswith(rule_id)
    assert [line for line in text.splitlines() if len(line) > 80 and "://" not in line] == []
    assert text.count("http") > 0


@pytest.mark.parametrize(("asked", "way"), [("T99", "--explain all"), ("t7", "T07")])
def test_an_unknown_rule_is_refused_with_a_way_on(asked: str, way: str) -> None:
    """How to list them; `T7` is not taken for T07: a typing mistake in a waiver would go unseen."""
    with pytest.raises(InputError) as caught:
        explain(asked)
    assert way in str(caught.value.fix)


def test_all_lists_every_rule_once() -> None:
    """One line each, in order."""
    assert [line[:3] for line in explain("all").splitlines()] == [rule.id for rule in RULES]


def test_the_page_is_the_rules() -> None:
    """python -m tools.rules_doc writes docs/reference/rules.md"""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_json_has_one_rule_or_all() -> None:
    """Severity, texts and sources as fields; nothing in it was measured."""
    (rule,) = document("t14")["rules"]

    assert (rule["id"], document("t14")["simulated"]) == ("T14", False)
    assert rule["fix"] in " ".join(page().split())
    assert rule["sources"]
    assert [one["id"] for one in document("all")["rules"]] == [one.id for one in RULES]
