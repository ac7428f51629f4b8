"""Study files: every mistake at once, each with its line and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.studies import GOOD
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.workloads.kinds import shipped
from vnuma.errors import InputError
from vnuma.workloads.cross_join.settings import CrossJoin
from vnuma.workloads.cross_join.workload import cross_join_queries

STUDIES = Path(__file__).parents[3] / "studies"


def problem(text: str) -> str:
    """The message for a study that is wrong."""
    with pytest.raises(InputError) as caught:
        parse_study(text, "a.yml")
    return str(caught.value)


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.yml")), ids=lambda path: path.name)
def test_every_shipped_study_is_valid(path: Path) -> None:
    """A study that is shipped can be run."""
    assert parse_study(path.read_text(encoding="utf-8"), path.name).labels


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("vm: sql16", "vm: [a, b]"), "a.yml:2: vm: must be the name of one VM, not ['a', 'b']."),
        (("  - 2x8", "  - 3x5"), "a.yml:7: topology 3x5 makes 15 vCPUs, but vcpus is 16.\n  Use one of"),
        (("- 2x8", "- {topology: 2x8, afinity: none}"), "'afinity'.\n  Did you mean 'affinity'?"),
        (("arms:", "all_arms: {colour: red}\narms:"), "Known fields here: affinity,"),
        (("arms:", "workload: {name: tpcc}\narms:"), next(iter(shipped()))),
        (("1x16\narms", "4x4\narms"), "a.yml:4: the reference arm '4x4' is not among the arms."),
        (("  - 2x8\n", "  - 2x8\n  - 2x8\n"), "a.yml:8: arm '2x8' is already the second arm."),
        (("arms:", "workload: {sizes: [200000]}\narms:"), "a.yml:5: size 200000 is more rows than"),
        (("arms:", "workload: {sizes: [500, 500]}\narms:"), "a.yml:5: 500 is listed twice."),
        (("name: a", "name: A b"), "a.yml:1: name: must match ^[a-z0-9]"),
        (("reference: 1x16\n", ""), "a.yml:1: field 'reference' is missing."),
        (("  - 2x8", "  - two"), "a.yml:7: arms.1: 'two' is not a topology"),
        (("vcpus: 16", "vcpus: many"), "a.yml:3: vcpus: must be an integer, not 'many'"),
        (("arms:", "design: {blocks: 0}\narms:"), "a.yml:5: design.blocks: must be at least 1, not 0"),
        (("arms:", "all_arms: {affinity: some}\narms:"), ("a.yml:5: all_arms.affinity: 'some' is "
            "not a valid value")),
        (("vm: sql16", "vm: [sql16"), "a.yml:3: not valid YAML"),
        (("name: a", "name: a\nname: b"), "a.yml:2: not valid YAML: found duplicate key"),
        (("vcpus: 16", "vcpus: " + "9" * 5_000), "a.yml:3: not valid YAML: a number of 5,000 digits"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(change: tuple[str, str], expected: str) -> None:
    """One mistake in a good file gives the sentence for it, at its place."""
    assert expected in problem(GOOD.replace(*change, 1))


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            [
                ("vcpus: 16", "vcpus: 0"),
                ("name: a", "nam: a"),
                ("arms:", "power: {tools_timeout_s: -1}\narms:"),
            ],
            4,
        ),
        ([("arms:", "afinity: none\narms:"), ("2x8", "3x5")], 2),  # an unknown field hides no other mistake
    ],
)
def test_all_mistakes_are_reported_at_once(changes: list[tuple[str, str]], lines: int) -> None:
    """Nobody should have to start four times to find four mistakes."""
    text = GOOD
    for change in changes:
        text = text.replace(*change, 1)

    assert len([line for line in problem(text).splitlines() if line.startswith("a.yml:")]) == lines


def test_an_arm_takes_what_all_arms_have_and_keeps_its_own() -> None:
    """all_arms fills in; what an arm says itself wins."""
    own = "  - {topology: 4x4, affinity: none}\nall_arms: {affinity: physical_cores}\n"
    study = parse_study(
        f"{GOOD}{own}design: {{precision: 0.5%, equivalence: 2%, order: williams}}\n", "a.yml"
    )

    assert [study.arm(arm).affinity for arm in ("2x8", "4x4")] == ["physical_cores", "none"]
    assert (study.design.precision, study.design.equivalence) == (0.005, 0.02)


@given(st.text(max_size=200))
def test_any_text_is_a_study_or_an_input_error(text: str) -> None:
    """Any file content gives a sentence and never a traceback."""
    try:
        parse_study(text, "a.yml")
    except InputError as error:
        assert str(error).startswith("a.yml:")  # noqa: PT017 - both outcomes are right


@pytest.mark.parametrize(
    ("design", "said"),
    [
        ("precision: 1%\n  blocks: 8", "a.yml:10: design.blocks and precision both set"),
        ("stop: decided\n  blocks: 8", "a.yml:10: design.blocks and stop: decided both set"),
        ("stop: decided\n  precision: 1%", "a.yml:10: design.precision and stop: decided both end"),
        ("stop: decided\n  order: fixed", "a.yml:9: stop: decided is for randomised order, not fixed"),
        ("stop: decided\n  max_blocks: 5", "a.yml:10: design.max_blocks: 5 ends the study before block 6"),
        ("max_blocks: 8", "a.yml:9: design.max_blocks limits a study that may end early"),
        ("order: latin_square", "a.yml:8: latin_square with 3 columns"),
        ("order: williams\n  blocks: 8", "a.yml:10: williams with 3 columns a block (arms, and A/A) is"),
        ("equivalence: 1", "a.yml:9: design.equivalence: 1 is not a percentage"),
        ("equivalence: 0%", "a.yml:9: design.equivalence: '0%' is not a percentage"),
        ("precision: 100%", "a.yml:9: design.precision"),
        (
            "control: remote\nworkload: {maxdop: 4}",
            "a.yml:9: the positive control limits SQL Server to one node",
        ),
        (
            "control: remote\nall_arms: {maxdop: 2}",
            "a.yml:9: the positive control limits SQL Server to one node",
        ),
    ],
)
def test_a_design_that_cannot_be_is_refused(design: str, said: str) -> None:
    """Two stopping rules, a cap without its rule, a square cut short, a percentage without its sign."""
    assert said in problem(f"{GOOD}design:\n  {design}\n")


def test_an_arms_own_maxdop_is_in_its_statements() -> None:
    """Without one it runs with the workload's."""
    arms = "  - {topology: 2x8, name: parallel, maxdop: 8}\n"
    study = parse_study(GOOD.replace("  - 2x8\n", arms), "a.yml")

    sql = {
        label: {
            query.sql[-18:]
            for query in cross_join_queries(CrossJoin.model_validate(study.workload_of(label)))
        }
        for label in study.labels
    }

    assert all("MAXDOP 1)" in text for text in sql["1x16"])
    assert all("MAXDOP 8)" in text for text in sql["parallel"])
    assert study.maxdops == (1, 8)


def test_an_arm_may_differ_in_the_workloads_factors_alone() -> None:
    """A factor reaches that arm; sizes are the study's; values must fit; each problem has its line."""
    arms = "  - {topology: 2x8, name: spooled, workload: {spool: avoided}}\n"
    study = parse_study(GOOD.replace("  - 2x8\n", arms), "a.yml")

    spools = [study.workload_of(label).model_dump()["spool"] for label in study.labels]
    assert spools == ["allowed", "avoided"]
    assert "a.yml:7: 'sizes' of the workload cross_join cannot differ" in problem(
        GOOD.replace("  - 2x8\n", "  - {topology: 2x8, workload: {sizes: [5]}}\n")
    )
    assert "a.yml:7: workload.spool: must be 'allowed' or 'avoided'" in problem(
        GOOD.replace("  - 2x8\n", "  - {topology: 2x8, workload: {spool: often}}\n")
    )


def test_published_ratios_of_a_figure_that_the_workload_does_not_tell_are_refused() -> None:
    """A misspelt one would be compared with nothing, unnoticed."""
    text = (STUDIES / "adkin2014.yml").read_text(encoding="utf-8")

    message = problem(text.replace("native: {spins per insert:", "native: {spins per row:"))

    assert "the workload log_spinlock has no figure 'spins per row' besides its metric." in message


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("dakic2019", True), ("chang2005", True), ("shea2012", False), ("adkin2014", False)],
)
def test_a_study_of_placements_alone_compares_no_shapes(name: str, shapes: bool) -> None:
    """Arms that differ in a workload's factors alone are one shape: their report asks for no topology."""
    path = STUDIES / f"{name}.yml"

    assert parse_study(path.read_text(encoding="utf-8"), str(path)).compares_shapes is shapes


def test_the_demo_s_study_gives_no_cause_for_its_own_warnings() -> None:
    """A newcomer's first report is exemplary: an A/A check, and an odd number of timed iterations."""
    design = parse_study((STUDIES / "quick.yml").read_text(encoding="utf-8"), "quick.yml").design

    assert design.a_a
    assert design.iterations >= 3
    assert design.iterations % 2 == 1
