"""The table of rules and sources says what really happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.estate.build import check
from tests.estate.designs import Design
from tests.estate.sources import LAB, Row, Source, read_sources, table
from tests.support.lab import start_lab
from tools.rule_sources import PAGE, markdown
from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import Subject
from vnuma.checks.rules.catalogue import BY_ID, RULES

NAMES = ("vCenter", "snapshot", "RVTools", "Terraform", "OVF, OVA", ".vmx", "Ansible", "table")


@pytest.fixture(scope="module")
def sources(lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Source]]:
    """Each source with all that it can say."""
    folder = tmp_path_factory.mktemp("sources")
    running = start_lab(lab_binary, folder / "lab", LAB, {})
    running.wait_for("sql_listening")
    yield read_sources(folder, running)
    running.stop()


@pytest.fixture(scope="module")
def rows(sources: list[Source]) -> dict[str, Row]:
    """The table."""
    return table(sources)


def test_the_page_is_what_the_code_does(sources: list[Source]) -> None:
    """python -m tools.rule_sources"""
    assert PAGE.read_text(encoding="utf-8") == markdown(sources)


@pytest.mark.parametrize("name", NAMES)
def test_a_full_example_evaluates_the_rules_that_the_table_names(
    name: str, sources: list[Source], rows: dict[str, Row]
) -> None:
    """With each option: what the table gives it is evaluated, and what it denies is not."""
    (source,) = (one for one in sources if one.name == name)
    words = [way.word for way in source.ways]
    for way in source.ways:
        evaluated = {rule.id for rule in RULES} - next(evaluate([way.subject], RULES)).not_evaluated.keys()
        cells = {rule: row[name] for rule, row in rows.items() if _applies(rule, way.subject)}
        # What the guest shows is not asked of an arm that has not run yet.
        reached = (
            words[words.index(way.word) :] if way.word == "--study" else words[: words.index(way.word) + 1]
        )
        promised = {rule for rule, cell in cells.items() if cell.whole and cell.way in reached}
        later = words[words.index(way.word) + 1 :]
        denied = {
            rule
            for rule, cell in cells.items()
            if cell.never or (cell.way in later and way.word not in cell.partly)
        }
        assert promised - evaluated == set(), way.word
        assert denied & evaluated == set(), way.word


def _applies(rule: str, subject: Subject) -> bool:
    """Not a rule of other releases: that passes wherever the release is known."""
    bounds, host = BY_ID[rule].applies, subject.host
    return host is None or bounds.since <= host.release.key <= bounds.until


def test_a_check_says_how_many_rules_its_source_allowed(rows: dict[str, Row], tmp_path: Path) -> None:
    """The number of the table, for a Terraform plan on a described host; rules in part may count.

    Without the host the check promises what a description adds: it leaves sockets, options and model open.
    """
    plan = Design(windows="2019").terraform(tmp_path)
    cells = [row["Terraform"] for row in rows.values()]
    whole = sum(cell.whole and cell.way in {"yes", "--host-nodes"} for cell in cells)
    partly = sum("--host-nodes" in cell.partly for cell in cells)

    ((without,), (with_host,)) = (
        check(plan, *options)["coverage"] for options in ((), ("--host-nodes", "2x16/96@8.0"))
    )

    assert whole <= with_host["rules_evaluated"] <= whole + partly
    assert with_host["rules"] == len(RULES)
    assert without["host_nodes_add"] == with_host["rules_evaluated"] - without["rules_evaluated"] > 0
    assert with_host["host_nodes_add"] == 0
