"""What a check is written as: each form against its published schema, and the same findings in all."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft4Validator

from tests.estate.build import TODAY, check, checked, document, estate_of, since, waiver
from vnuma.checks.against_design import compare_with_design
from vnuma.checks.result import CheckResult
from vnuma.checks.rule import Severity
from vnuma.report.check import as_markdown, as_text
from vnuma.report.check.as_data import as_csv, as_json
from vnuma.report.check.as_page import as_page
from vnuma.report.check.as_sarif import as_sarif
from vnuma.words.plain_text import escaped

DIFFERS = ("numCoresPerSocket", "4", "2")
SCHEMAS = Path(__file__).parent / "data" / "schemas"
ODD = "<b>&\x01\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")


@pytest.fixture
def result(tmp_path: Path) -> CheckResult:
    """A check with everything in it: blocks, waivers, an earlier check, odd names, things unseen."""
    before = checked(estate_of("sql-a", cpuHotAddEnabled=False))
    after = checked(
        estate_of("sql-a", "sql-b", f"=odd {ODD}"),
        waivers=[waiver(object_="sql-b"), waiver(rule="A02", object_="gone")],
        today=TODAY,
    )
    return replace(since(before, after, tmp_path), simulated="paper")


def test_sarif_is_valid_and_has_every_finding(result: CheckResult) -> None:
    """The log satisfies OASIS' schema; levels, suppressions and baseline states are the check's."""
    log = document(as_sarif(result))
    Draft4Validator(json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text())).validate(log)
    (run,) = log["runs"]
    present = [item for item in run["results"] if item["baselineState"] != "absent"]
    assert len(present) == len(result.groups)
    suppressed = [item for item in present if "suppressions" in item]
    assert [item["locations"][0]["logicalLocations"][0]["name"] for item in suppressed] == ["sql-b"]
    for item in run["results"]:
        assert run["tool"]["driver"]["rules"][item["ruleIndex"]]["id"] == item["ruleId"]
    notes = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert len([text for text in notes if "esx02 was not seen" in text]) == 1


def test_json_has_what_programs_need(result: CheckResult) -> None:
    """Each finding has its object, its VMs, what was observed and the fix as settings and variables."""
    found = document(as_json(result))
    assert (found["schema"], found["simulated"], found["scenario"]) == ("vnuma/check/1", True, "paper")
    assert found["summary"]["vms"] == 3
    hot_add = next(item for item in found["findings"] if item["rule"] == "T11" and not item["waived"])
    assert hot_add["object"]["kind"] == "vm"
    assert hot_add["observed"]
    assert hot_add["fix"]["settings"] or hot_add["fix"]["commands"] or hot_add["fix"]["text"]
    assert found["baseline"]["new"] > 0
    reasons = sum(len(item["rules"]) * item["vms"] for item in found["not_evaluated"])
    assert reasons == found["summary"]["checks_not_evaluated"]


def test_csv_has_a_line_for_each_finding_and_no_formula(result: CheckResult) -> None:
    """Spreadsheets get text; a VM called =odd does not become a formula."""
    rows = list(csv.DictReader(io.StringIO(as_csv(result))))
    assert len(rows) == sum(len(vm.findings) for vm in result.vms)
    assert {row["simulated"] for row in rows} == {"true"}
    assert {row["vm"] for row in rows} == {"sql-a", "sql-b", f"'=odd {escaped(ODD)}"}
    assert Counter(row["waived"] for row in rows)["CR-17"] == 1


@pytest.fixture
def drifted() -> CheckResult:
    """Of three designed VMs one differs, one is missing and one has a name that two VMs have."""
    design = estate_of("sql-a", "sql-b", "sql-c", "web")
    present = estate_of("sql-a", "sql-b", "web", numCoresPerSocket=4)
    twice = replace(present.vms[2], facts=replace(present.vms[2].facts, instance_uuid="other"))
    vms = (
        present.vms[0],
        design.vms[1],
        replace(design.vms[3], facts=replace(twice.facts, instance_uuid="1")),
        twice,
    )
    now = replace(present, vms=vms)
    found = compare_with_design([design], [now], lambda _estate, _vm: True, lambda _name: True)
    assert (len(found.vms), len(found.only_design), len(found.unmatched)) == (1, 1, 1)
    return replace(checked(now), drift=found)


def test_sarif_has_drift_as_findings_of_a_rule(drifted: CheckResult) -> None:
    """As valid as the rest; what could not be compared is a notification."""
    log = document(as_sarif(drifted))
    Draft4Validator(json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text())).validate(log)
    (run,) = log["runs"]
    drift = [item for item in run["results"] if item["ruleId"] == "drift"]
    assert [item["properties"]["vms"] for item in drift] == [["sql-a"], ["sql-c"]]
    assert re.findall(r"(\w+) is (\d), designed (\d)", drift[0]["message"]["text"]) == [DIFFERS]
    assert {run["tool"]["driver"]["rules"][item["ruleIndex"]]["id"] for item in drift} == {"drift"}
    notes = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert len([text for text in notes if "web was not compared" in text]) == 1


def test_csv_has_a_line_for_each_vm_that_is_not_as_designed(drifted: CheckResult) -> None:
    """In the columns of a finding, with the design as source."""
    rows = [row for row in csv.DictReader(io.StringIO(as_csv(drifted))) if row["rule"] == "drift"]
    assert [(row["vm"], row["severity"], row["title"]) for row in rows] == [
        ("sql-a", "warn", "The VM is not as designed"),
        ("sql-c", "warn", "The VM is only in the design"),
    ]
    assert re.findall(r"(\w+) is (\d), designed (\d)", rows[0]["observed"]) == [DIFFERS]
    assert [bool(row["host"] and row["shape"]) for row in rows] == [True, False]
    assert len({row["source"] for row in rows}) == 1


def test_drift_is_on_the_screen_and_in_markdown(drifted: CheckResult) -> None:
    """Each setting with both values; VMs of one side, and those that were not compared, by their names."""
    screen = "\n".join(line for line, _ in as_text.lines(drifted))
    for text in (screen, as_markdown.as_markdown(drifted)):
        assert re.findall(r"(\w+) is (\d), designed (\d)", text) == [DIFFERS]
        assert {"sql-c", "web"} <= set(re.findall(r"sql-c|web", text))


def test_a_cluster_is_found_once_with_its_worst(tmp_path: Path) -> None:
    """Hosts differ: a VM that gets other nodes on each makes a warning, which hides the note for another."""
    table = tmp_path / "design.csv"
    table.write_text("name;vCPU;Cores per socket;Memory GB\nsmall;4;4;16\nlarge;24;12;64\nwide;28;14;64\n")
    found = check(table, "--host-nodes", "2x16/256@7.0", "--host-nodes", "4x8/128@7.0")["findings"]
    (unlike,) = (item for item in found if item["rule"] == "T19")
    assert (unlike["severity"], unlike["object"]["kind"]) == ("warn", "cluster")
    assert [vm["name"] for vm in unlike["vms"]] == ["large", "wide"]


@pytest.mark.parametrize("width", [as_text.WIDTH, 58, 38])
def test_the_screen_fits_its_columns(result: CheckResult, width: int) -> None:
    """Counts first, then findings, then what could not be seen; nothing is wider than the terminal."""
    lines = [line for line, _ in as_text.lines(result, width)]
    counts = re.search(r"3 VMs by worst finding: 3 block, 0 warn, 0 info, 0 pass", " ".join(lines))
    rows = [line.split()[:3] for line in lines]
    assert counts
    assert max(map(len, lines)) <= width
    assert [row for row in rows if row[:1] in (["waived"], ["unseen"])] == [
        *(["waived", "T11", "sql-b"], ["unseen", "host", "esx02:"])
    ]


def test_why_rules_were_not_evaluated_has_one_order(result: CheckResult) -> None:
    """Most VMs first, then most rules, then by the words: never by chance."""
    order = [(-vms, -len(rules), reason) for reason, rules, vms in result.reasons]
    assert order == sorted(order)


def test_a_large_estate_fits_a_screen() -> None:
    """Where there are many findings, each rule shows examples and its number of objects."""
    result = checked(estate_of(*(f"sql-{number:03d}" for number in range(200))))
    lines = [line for line, _ in as_text.lines(result)]
    assert len(lines) < 120
    assert any(line.startswith("block  T11     200") for line in lines)


def test_markdown_has_every_finding_as_plain_text(result: CheckResult) -> None:
    """One row for each object with one; a VM's name never becomes a mention, link, HTML or cell."""
    text = as_markdown.as_markdown(result)
    open_ = [group for group in result.groups if not group.judged.waived]
    rows = [line for line in text.splitlines() if line.startswith("| ") and "block" in line]
    assert len(rows) == sum(group.judged.severity is Severity.BLOCK for group in open_)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {6}
    assert [text.count(part) for part in ("CR-17", "<details>")] == [2, 2]


@pytest.mark.parametrize("name", ["@everyone", "<img src=x>", "a|b", "#17", "[x](http://y)", "`x`"])
def test_no_name_means_anything_in_markdown(name: str) -> None:
    """A pull request's author chooses it."""
    text = as_markdown.as_markdown(checked(estate_of(name, cpuHotAddEnabled=True)))
    assert name not in text


def test_a_finding_that_waits_for_no_other_shows_its_fix() -> None:
    """A sentence about a finding's relation to others does not replace its fix."""
    result = checked(estate_of("sql-a", numCPUs=2, numCoresPerSocket=2))
    (found,) = (group.judged.finding for group in result.groups if group.judged.finding.rule == "T11")
    assert found.matters
    assert not found.superseded_by
    assert found.fix.text in as_markdown.as_markdown(result)


def test_a_host_is_found_once_whatever_its_vms_are() -> None:
    """VMs of different sizes see one host's power policy: one finding with both VMs, in no column of VMs."""
    estate = estate_of("sql-a", "sql-b")
    large = replace(estate.vms[0].facts, settings={**estate.vms[0].facts.settings, "numCPUs": 12})
    vms = (replace(estate.vms[0], facts=large), *estate.vms[1:])
    clusters = tuple(
        replace(one, hosts=tuple(replace(host, power_policy="dynamic") for host in one.hosts))
        for one in estate.clusters
    )
    result = checked(replace(estate, vms=vms, clusters=clusters))
    (found,) = (group for group in result.groups if group.judged.finding.rule == "M04")
    assert len(found.vms) == 2
    (head,) = (line for line in as_markdown.as_markdown(result).splitlines() if line.startswith("| | rule |"))
    assert {word.strip() for word in head.split("|")}.isdisjoint({"VM", "VMs"})


@pytest.mark.parametrize(
    ("severities", "words"),
    [
        ("block warn info pass", "1 VM has .*1 more has warnings; 1 has only notes; 1 passes everything"),
        ("warn warn", r"No VM has a blocking fault.*2 VMs have warnings\."),
        ("pass pass", "No VM has a blocking fault.*2 pass everything"),
        ("block", r"1 VM has a blocking fault.*what it may use\."),
    ],
)
def test_the_page_begins_with_how_many_vms_are_how_bad(severities: str, words: str) -> None:
    """A note is not a pass, and nothing is counted that there is none of."""
    vms = []
    for number, word in enumerate(severities.split()):
        (vm,) = checked(estate_of(f"sql-{number}")).vms
        first = vm.findings[0]
        found = [
            replace(first, finding=replace(first.finding, severity=one)) for one in Severity if one == word
        ]
        vms.append(replace(vm, findings=tuple(found)))
    page = as_page(replace(checked(estate_of("sql-0")), vms=tuple(vms)))
    lead = " ".join(re.sub("<[^>]*>", "", page[page.index("<body") :]).split())
    assert re.search(words, lead), lead[:300]
