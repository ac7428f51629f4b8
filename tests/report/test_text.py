"""The run as text for a terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.report.build import ARMS, GOLDEN_STORY, Load, Lost, Story, study_text
from vnuma.report.model.trust import effective_count, limiting
from vnuma.report.model.words import answer_words
from vnuma.report.terminal.run_text import all_as_text, as_text, brief_as_text
from vnuma.store.rows import RunState

GOLDEN = """\
SIMULATED (lab, scenario paper): not measured on hardware
quick.1  6 blocks in random order, 6 boots an arm (12 for 1x16)

Elapsed time, ms, median of boot medians, lower is faster
rows a side      1x16           2x8         4x4         8x2        16x1
2000           76,452        77,092      77,962      78,312      79,449
  ms              ref          +366      +1,434      +1,719      +2,811
  %               ref          +0.5        +1.9        +2.2        +3.7
  95%                  0.00 to 0.96  1.4 to 2.4  1.8 to 2.7  3.2 to 4.2

2x8   equivalent within 1%: +0.5% (90%: 0.1 to 0.9); detectable, too small to
      matter; its 6 boots do not exclude that up to 40% are in a state 2.6% or
      more away, unseen
4x4   slower by 1.9% (1.4 to 2.4), by at least 1%
8x2   slower by 2.2% (1.8 to 2.7), by at least 1%
16x1  slower by 3.7% (3.2 to 4.2), by at least 1%

Compared with Dakic 2019, Table 1: form client, ms
rows a side  arm   theirs    ours     %               ours, %  theirs is
2000         1x16  76,592  76,452   ref                   ref
2000         2x8   76,920  77,092  +0.4    +0.5 (-0.9 to 1.8)  inside
2000         4x4   78,152  77,962  +2.0     +1.9 (0.8 to 2.9)  inside
2000         8x2   78,487  78,312  +2.5  +2.25 (1.05 to 3.46)  inside
2000         16x1  79,324  79,449  +3.6     +3.7 (2.1 to 5.2)  inside

Trust  1x16 against itself +0.2% (-0.2 to 0.7), p = 0.29, no alarm
       36 of 36 cells effective as intended; positive control not run
       boots around their arm's median, min to max: 1x16 -0.4 to 1.4% (n = 12),
       2x8 -0.9 to 0.6% (n = 6), 4x4 -0.4 to 0.7% (n = 6),
       8x2 -0.6 to 0.7% (n = 6), 16x1 -0.7 to 0.4% (n = 6)

Differences are within-block ratios: they need not equal the gap of medians.
A published figure is often one run. One boot's range holds the median of one
  more of ours in 95% of cases: outside is not evidence of a difference, inside
  is not evidence of agreement.
"""


def flat(text: str) -> str:
    """Without its line breaks."""
    return " ".join(text.split())


def test_the_golden_example_reads_as_designed(loaded: Load) -> None:
    """The golden study gives table, verdicts and trust to the character; on real machines without banner."""
    real = loaded(replace(GOLDEN_STORY, scenario=None))

    assert as_text(loaded(GOLDEN_STORY)) == GOLDEN
    assert as_text(real) == "".join(GOLDEN.splitlines(keepends=True)[1:])


@pytest.mark.parametrize(
    ("story", "notes"),
    [(Story(), 3), (GOLDEN_STORY, 2), (Story(stop_after=0, state=RunState.PLANNED), 1)],
    ids=["several sizes", "one size", "planned"],
)
def test_notes_explain_only_what_is_shown(loaded: Load, story: Story, notes: int) -> None:
    """Several sizes make intervals wider than 95%; without cells there is no published figure beside ours."""
    last = as_text(loaded(story)).rstrip().rpartition("\n\n")[2]

    assert len(re.findall(r"^\S", last, re.MULTILINE)) == notes


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("forms", ["client", "client, server, into"])
def test_five_arms_and_four_sizes_fit_the_terminal(loaded: Load, forms: str, width: int) -> None:
    """No line is longer than the terminal, and none carries a control sequence."""
    run = loaded(Story(text=study_text(sizes="500, 1000, 2000, 3000", forms=forms)))

    for text in (as_text(run, width), brief_as_text(run, width), all_as_text(run, width)):
        assert max(map(len, text.splitlines())) <= width
        assert re.fullmatch(r"[ -~\n]*", text)


def test_a_narrow_terminal_gets_lines_instead_of_a_table(loaded: Load) -> None:
    """Every figure of the table is there, and nothing is cut off."""
    figures = re.compile(r"[+-]?[\d,.]+\d")
    table = GOLDEN.partition("2000 ")[2].partition("\n\n")[0]
    narrow = as_text(loaded(GOLDEN_STORY), width=60)

    assert set(figures.findall(table)) <= set(figures.findall(narrow))


def test_the_secondary_form_has_no_differences_in_units_and_no_verdicts(loaded: Load) -> None:
    """Only the first form decides: of two sizes and two forms there are two such lines, and four verdicts."""
    text = as_text(loaded(Story()))

    assert len(re.findall(r"^  ms ", text, re.MULTILINE)) == 2
    assert re.findall(rf"^({'|'.join(ARMS[1:])}) ", text, re.MULTILINE) == list(ARMS[1:])


def test_each_vm_of_a_run_has_figures_of_its_own(loaded: Load) -> None:
    """VMs are never pooled: every one has its table, its verdicts and its trust."""
    text = as_text(loaded(Story(text=study_text(vms="sql-a, sql-b", forms="client"))))

    assert re.findall(r"^(sql-[ab]|Trust)\b", text, re.MULTILINE) == ["sql-a", "Trust", "sql-b", "Trust"]


def test_attempts_that_did_not_count_are_shown_and_leave_the_figures_alone(loaded: Load) -> None:
    """Medians and verdicts are those of the same run without them, and each is a line more."""
    with_lost = as_text(loaded(replace(GOLDEN_STORY, lost={("4x4", 3): (Lost(), Lost())})))
    same, more = with_lost.split("Trust")

    assert same == GOLDEN.partition("Trust")[0]
    assert re.findall(r"block 3, 4x4, attempt (\d): failed, tools_timeout", flat(more)) == ["1", "2"]


def test_only_boots_seen_as_intended_count_as_effective(loaded: Load) -> None:
    """A boot with a mismatch is not as intended; one of which nothing was stored is not evaluated."""
    run = loaded(GOLDEN_STORY)
    first, second, *rest = run.attempts
    assert isinstance(first.effective, dict)
    wrong = replace(first, effective={**first.effective, "mismatches": ["the guest has 1 vNUMA node"]})
    found = effective_count(
        replace(run, attempts=(wrong, replace(second, effective=None), *rest)), run.vms[0]
    )

    assert (found.planned, found.as_intended, found.unseen) == (36, 34, 1)


def test_everything_includes_the_methods_that_do_not_decide(loaded: Load) -> None:
    """`--all` keeps the table as it is; below it is a line for each arm by other methods, and the answer."""
    run = loaded(GOLDEN_STORY)
    text = all_as_text(run)
    below = text.removeprefix(GOLDEN)

    assert text.startswith(GOLDEN)
    assert re.findall(r"^(\S+): Hodges-Lehmann \+", below, re.MULTILINE) == list(ARMS[1:])
    assert flat(below).endswith(f"Answer {answer_words(run, run.result.primary[0])}")


def test_what_is_shown_without_asking_ends_with_the_answer(loaded: Load) -> None:
    """The page's first sentence and its limits in short, below the figures that decide; no other form."""
    run = loaded(Story())
    ((vm, found),) = run.primary
    brief = brief_as_text(run)
    limits = ". ".join(item.short for item in limiting(run, vm, found))

    last = f"Answer {answer_words(run, found)} Limits {limits}. Details: vnuma results quick.1 --all"
    assert flat(brief).endswith(last)
    assert {"Q06"} <= {item.rule for item in limiting(run, vm, found)}
    assert len(re.findall(r"^  ms ", brief, re.MULTILINE)) == 2


def test_one_boot_has_no_spread_to_warn_of(loaded: Load) -> None:
    """Only the reference, which ran twice, has a range; no column is said to vary more than others."""
    run = loaded(Story(text=study_text(sizes="500", blocks=1)))

    assert re.findall(r"(\S+) \S+ to \S+ \(n = (\d)\)", flat(brief_as_text(run))) == [("1x16", "2")]
    assert not [item for item in run.result.primary[0].cautions if item.id == "variance_gate"]
