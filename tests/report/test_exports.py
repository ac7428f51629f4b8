"""CSV and JSON of a run."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.report.build import ARMS, GOLDEN_STORY, LABELS, Load, Lost, Story, study_text
from vnuma.report.export.results import as_json, results_schema
from vnuma.report.model.model import LoadedRun
from vnuma.report.tables.csv_export import TABLES
from vnuma.report.terminal.run_text import as_markdown
from vnuma.store.rows import RunState


def rows(loaded: LoadedRun) -> list[dict[str, str]]:
    """The CSV's lines."""
    return list(csv.DictReader(io.StringIO(TABLES["results"].of(loaded))))


def document(loaded: LoadedRun) -> dict[str, Any]:
    """The JSON document."""
    found: dict[str, Any] = json.loads(as_json(loaded))
    return found


def keys(value: object) -> set[str]:
    """Every key of a JSON value, at any depth."""
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys(item)}
    return {key for item in value for key in keys(item)} if isinstance(value, list) else set()


def test_csv_has_a_line_for_each_size_and_arm_and_one_for_all_sizes(loaded: Load) -> None:
    """Tidy: VM x form x metric x (sizes x arms + compared arms)."""
    found = rows(loaded(Story()))

    assert len(found) == 2 * 3 * (2 * len(ARMS) + len(ARMS) - 1)
    assert {row["simulated"] for row in found} == {"true"}
    assert {row["scenario"] for row in found} == {"paper"}
    assert {row["form"] for row in found if row["primary"] == "true"} == {"client"}
    assert {row["metric"] for row in found if row["primary"] == "true"} == {"elapsed_ms"}


def test_csv_leaves_missing_values_empty(loaded: Load) -> None:
    """An arm without any valid boot has no number at all, and a reason."""
    gone = frozenset(("8x2", block) for block in range(1, 7))
    found = [row for row in rows(loaded(Story(given_up=gone))) if (row["arm"], row["size"]) == ("8x2", "500")]
    numbers = ("median_ms", "min_ms", "max_ms", "diff_ms", "diff_percent", "lo_percent")

    assert {row[name] for row in found for name in numbers} == {""}
    assert {(row["reason"], row["n_boots"]) for row in found} == {("no valid boot", "0")}


def test_csv_text_is_never_run_as_a_formula(loaded: Load) -> None:
    """A VM named like a formula is text to a spreadsheet."""
    story = Story(text=study_text(vms="'=HYPERLINK(1)'", blocks=1, sizes="500", forms="client"))

    assert {row["vm"] for row in rows(loaded(story))} == {"'=HYPERLINK(1)"}


@pytest.mark.parametrize("name", TABLES)
def test_every_line_of_a_csv_fills_its_columns_as_they_are_described(loaded: Load, name: str) -> None:
    """Numbers are numbers, yes and no are true and false; every column is filled somewhere or is a reason."""
    table = TABLES[name]
    found = list(csv.DictReader(io.StringIO(table.of(loaded(GOLDEN_STORY)))))
    kinds = {column.name: column.kind for column in table.columns}

    assert found or name == "figures"
    for row in found:
        assert list(row) == list(kinds)
        for column, text in row.items():
            if text and kinds[column] in ("number", "whole"):
                assert math.isfinite(float(text))
            if kinds[column] == "yes/no":
                assert text in ("true", "false", "")


def test_waits_are_given_by_form_and_by_arm(loaded: Load) -> None:
    """Every wait type as a share of the elapsed time, in the document as in CSV; all arms together first."""
    run = loaded(Story(text=study_text(sizes="500", forms="client")))
    told = {
        (item["arm"] or "all", share["type"]): share["share"] * 100
        for item in document(run)["waits"]
        for share in item["shares"]
    }
    found = list(csv.DictReader(io.StringIO(TABLES["waits"].of(run))))

    assert next(iter(told)) == ("all", "ASYNC_NETWORK_IO")
    assert told.keys() == {(arm, "ASYNC_NETWORK_IO") for arm in ("all", *ARMS)}
    assert list(told.values()) == pytest.approx([93] * 6, abs=0.1)
    assert {(row["arm"], row["wait_type"]): float(row["share_percent"]) for row in found} == told


def test_json_follows_its_schema(loaded: Load) -> None:
    """Schema name, run, simulated and the arms' verdicts stand at the top, in snake_case throughout."""
    found = document(loaded(GOLDEN_STORY))
    arm = found["arms"][0]

    assert found["schema"] == "vnuma/results/1"
    assert found["simulated"] is True
    assert found["run"] == "quick.1"
    assert (arm["arm"], arm["verdict"], arm["detectable"]) == ("2x8", "equivalent", True)
    assert arm["ratio"] == pytest.approx(1.00478895, abs=1e-8)
    assert arm["interval_95"] == pytest.approx([1.00000471, 1.00959608], abs=1e-8)
    assert arm["interval_90"] == pytest.approx([1.00059357, 1.00900192], abs=1e-8)
    assert all(key == key.lower() and key.replace("_", "a").isalnum() for key in keys(found))


def test_json_lists_attempts_that_did_not_count(loaded: Load) -> None:
    """Each lost attempt has its reason and says whether its cell was measured by another."""
    story = Story(lost={("2x8", 1): (Lost(),)}, given_up=frozenset({("4x4", 2)}))
    (vm,) = document(loaded(story))["attempts_not_counted"]

    assert {(one["arm"], one["reason"], one["cell_measured_by_another"]) for one in vm["attempts"]} == {
        *(("2x8", "tools_timeout", True), ("4x4", "tools_timeout", False))
    }


def test_json_is_unrounded(loaded: Load) -> None:
    """A median is what was stored, to the last bit."""
    found = document(loaded(Story(ms=lambda *_: math.pi * 1000)))
    medians = {
        arm["median_ms"]
        for analysis in found["analyses"]
        if analysis["metric"] == "elapsed_ms"
        for size in analysis["sizes"]
        for arm in size["arms"]
    }

    assert medians == {math.pi * 1000}


def undescribed(value: object, schema: dict[str, Any], root: dict[str, Any], place: str = "") -> list[str]:
    """Keys of a document that its schema does not describe."""
    found: list[str] = []
    for part in schema.get("anyOf", [schema]):
        if "$ref" in part:
            part = root["$defs"][part["$ref"].rpartition("/")[2]]
        if isinstance(value, dict) and "properties" in part:
            for key, inner in value.items():
                known = part["properties"].get(key)
                found += (
                    [f"{place}.{key}"] if known is None else undescribed(inner, known, root, f"{place}.{key}")
                )
        elif isinstance(value, list) and isinstance(part.get("items"), dict):
            for inner in value:
                found += undescribed(inner, part["items"], root, f"{place}[]")
    return found


@pytest.mark.parametrize(
    "story",
    [
        GOLDEN_STORY,
        Story(given_up=frozenset((label, block) for label in LABELS for block in range(1, 7))),
        Story(given_up=frozenset(("8x2", block) for block in range(1, 7))),
        Story(text=study_text(blocks=1)),
        Story(text=study_text(order="fixed", a_a=False, vms="a, b"), lost={("2x8", 1): (Lost(),)}),
        Story(stop_after=3, state=RunState.RUNNING),
        Story(stop_after=0, state=RunState.PLANNED),
    ],
    ids=["golden", "nothing", "an arm missing", "one block", "fixed order, no A/A", "running", "planned"],
)
def test_the_document_keeps_its_schema_and_gives_a_reason_for_each_null(loaded: Load, story: Story) -> None:
    """Every key in it is described; what is missing is null, never zero; no NaN or infinity is written."""
    schema = json.loads(results_schema())
    found = document(loaded(story))

    Draft202012Validator(schema).validate(found)
    assert undescribed(found, schema, schema) == []
    assert all(arm["reason"] for arm in found["arms"] if None in (arm["ratio"], arm["interval_95"]))
    for analysis in found["analyses"]:
        for check in (analysis["a_a"], analysis["positive_control"], analysis["detectable_effect"]):
            if None in (check.get("state", 0), check.get("passed", 0), check.get("value", 0)):
                assert check["reason"]
    assert not re.search("NaN|Infinity", json.dumps(found))


def test_a_document_without_a_verdict_breaks_the_schema(loaded: Load) -> None:
    """The schema demands what readers rely on."""
    found = document(loaded(GOLDEN_STORY))
    del found["arms"][0]["verdict"]

    assert not Draft202012Validator(json.loads(results_schema())).is_valid(found)


def test_json_holds_what_verdicts_rest_on(loaded: Load) -> None:
    """The gate's F of every column, growth of every arm, and a size's interval that decides equivalence."""
    found = document(loaded(Story()))["analyses"][0]

    assert [flag["label"] for flag in found["gate"]] == list(LABELS)
    assert all(
        flag["f"] is None or flag["flagged"] == (flag["f"] > flag["critical"]) for flag in found["gate"]
    )
    assert [item["arm"] for item in found["growth"]] == [arm["arm"] for arm in found["arms"]]
    assert found["two_groups"]["share"] <= 1
    for size in found["sizes"]:
        for arm in size["arms"][1:]:
            low, high = arm["equivalence_interval"]
            assert arm["interval"][0] < low < arm["ratio"] < high < arm["interval"][1]


def test_markdown_has_the_answer_the_table_and_the_verdicts(loaded: Load) -> None:
    """To paste into a ticket; that it is simulated comes first."""
    lines = as_markdown(loaded(Story())).splitlines()
    heads = [line.strip("| ").split(" | ") for line in lines if line.startswith("| rows a side")]

    assert lines[2].startswith("**SIMULATED")
    assert heads == [["rows a side", *ARMS]]
    assert [line.split("**")[1] for line in lines if line.startswith("- ")] == list(ARMS[1:])
