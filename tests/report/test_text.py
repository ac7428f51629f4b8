"""The run as text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.report.build import ARMS, GOLDEN_STORY, LABELS, Lost, Story, study_text
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import answer
from vnuma.report.terminal.run_text import all_as_text, as_text, brief_as_text
from vnuma.store.rows import Outcome, RunState

Load = Callable[[Story], LoadedRun]

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


def test_the_golden_example_reads_as_designed(loaded: Load) -> None:
    """The golden study gives the table, the verdicts and the trust lines, to the character."""
    assert as_text(loaded(GOLDEN_STORY)) == GOLDEN


def test_a_level_other_than_95_percent_is_explained_below(loaded: Load) -> None:
    """With several sizes each interval is wider; with one size nothing needs to be said."""
    said = "Intervals at one size are 97.5% each, so that all sizes hold together at 95%.\n"

    assert as_text(loaded(Story())).endswith(said)
    assert "Intervals at one size" not in as_text(loaded(GOLDEN_STORY))
    assert "Intervals at one size" not in as_text(loaded(Story(stop_after=0, state=RunState.PLANNED)))


def test_a_run_on_real_machines_has_no_banner(loaded: Load) -> None:
    """Only the lab's figures are called simulated."""
    text = as_text(loaded(replace(GOLDEN_STORY, scenario=None)))

    assert text == "".join(GOLDEN.splitlines(keepends=True)[1:])


@pytest.mark.parametrize("forms", ["client", "client, server, into"])
def test_five_arms_and_four_sizes_fit_in_eighty_columns(loaded: Load, forms: str) -> None:
    """No line is longer than 80 characters, and none carries a control sequence."""
    text = as_text(loaded(Story(text=study_text(sizes="500, 1000, 2000, 3000", forms=forms))))

    assert max(map(len, text.splitlines())) <= 80
    assert re.fullmatch(r"[ -~\n]*", text)


def test_a_narrow_terminal_gets_lines_instead_of_a_table(loaded: Load) -> None:
    """Below the table's width every figure is shown, one line per arm, nothing truncated."""
    text = as_text(loaded(GOLDEN_STORY), width=60)

    assert max(map(len, text.splitlines())) <= 60
    assert "rows a side: 2000" in text
    assert "  4x4: 77,962 ms, +1,434 ms, +1.9%" in text
    assert "SIMULATED" in text


def test_the_secondary_form_is_shorter_and_said_to_decide_nothing(loaded: Load) -> None:
    """Only the first form has verdicts; others show medians and percent."""
    text = as_text(loaded(Story()))
    first, second = text.split("Secondary (not used for the verdict): form server")

    assert first.count("Elapsed time") == 1
    assert "  ms  " in first
    assert "  ms  " not in second.split("Trust")[0]
    assert "slower by" not in second


def test_a_fixed_order_withholds_every_word(loaded: Load) -> None:
    """Fixed order: no arm is called slower, faster or equivalent, whatever the figures say."""
    text = as_text(loaded(Story(text=study_text(order="fixed"))))

    assert text.count("Verdict withheld: fixed order") == len(ARMS) - 1
    assert not re.search(r"slower by|faster by|equivalent within", text)
    assert "in FIXED order" in text


def test_no_valid_cell_is_said_and_shows_no_figures(loaded: Load) -> None:
    """A run without any valid cell gives no median, zero or otherwise, and names the reasons."""
    everything = frozenset((label, block) for label in LABELS for block in range(1, 7))
    text = as_text(loaded(Story(given_up=everything, state=RunState.STOPPED)))

    assert "(no cell gave a valid measurement)" in text
    assert "0 of 36 cells effective as intended" in text
    assert "tools_timeout" in text
    assert not re.search(r"\d,\d{3}\b", text)


def test_attempts_that_did_not_count_are_counted_and_explained(loaded: Load) -> None:
    """Failed, invalid and interrupted attempts stand with their reason; the cell's valid attempt counts."""
    lost = {
        ("4x4", 3): (Lost(reason="connection_dropped", detail="08S01 in the middle of a result."),),
        ("2x8", 2): (
            Lost(Outcome.INVALID, "topology_mismatch", "the guest has 1 vNUMA node, the arm needs 2"),
        ),
        ("8x2", 5): (Lost(Outcome.INTERRUPTED, "interrupted", ""),),
    }
    text = as_text(loaded(Story(lost=lost)))
    unwrapped = " ".join(text.split())

    assert "3 attempts did not count (1 failed, 1 interrupted, 1 invalid)" in unwrapped
    assert (
        "block 3, 4x4, attempt 1: failed, connection_dropped: 08S01 in the middle of a result." in unwrapped
    )
    assert "block 2, 2x8, attempt 1: invalid, topology_mismatch: the guest has 1 vNUMA node" in unwrapped
    assert "36 of 36 cells effective as intended" in text


def test_attempts_that_did_not_count_leave_the_figures_alone(loaded: Load) -> None:
    """Medians and verdicts are those of the same run without the lost attempts."""
    lost = {("4x4", 3): (Lost(), Lost())}
    with_lost = as_text(loaded(replace(GOLDEN_STORY, lost=lost)))

    assert with_lost.split("Trust")[0] == GOLDEN.split("Trust")[0]


def test_a_cell_given_up_is_named_with_its_reason(loaded: Load) -> None:
    """A cell without any valid attempt is missing with a reason, and its arm has a boot less."""
    text = as_text(loaded(Story(given_up=frozenset({("16x1", 5)}))))

    assert "without a value: 16x1 in block 5 (tools_timeout)" in text
    assert "35 of 36 cells effective as intended" in text
    assert "16x1  too few boots (5 of 6)" in text


def test_a_run_still_going_says_so(loaded: Load) -> None:
    """Figures of a run that has not ended are marked as passing."""
    story = Story(stop_after=20, state=RunState.RUNNING)
    text = as_text(loaded(story))

    assert "The run is still going: 20 of 36 cells valid; figures will change." in text
    assert "of 6 blocks in random order" in text


def test_each_vm_of_a_run_has_figures_of_its_own(loaded: Load) -> None:
    """VMs are never pooled: every one has its table, its verdicts and its trust."""
    text = as_text(loaded(Story(text=study_text(vms="sql-a, sql-b", forms="client"))))

    assert text.count("Trust  ") == 2
    assert text.index("\nsql-a\n") < text.index("\nsql-b\n")


def test_only_boots_seen_as_intended_count_as_effective(loaded: Load) -> None:
    """A boot with a mismatch is not as intended; one of which nothing was stored is not evaluated."""
    run = loaded(GOLDEN_STORY)
    first, second, *rest = run.attempts
    assert isinstance(first.effective, dict)
    wrong = replace(first, effective={**first.effective, "mismatches": ["the guest has 1 vNUMA node"]})
    unseen = replace(second, effective=None)
    text = as_text(replace(run, attempts=(wrong, unseen, *rest)))

    assert "34 of 36 cells effective as intended; 1 not evaluated" in " ".join(text.split())


def test_a_run_before_its_declared_end_says_how_far_it_is_without_a_verdict(loaded: Load) -> None:
    """Seven of eight blocks are complete: figures and intervals, and why there is no verdict."""
    run = loaded(Story(text=study_text(blocks=8), stop_after=42))
    text, brief = (" ".join(made(run).split()) for made in (as_text, brief_as_text))

    assert "Not every cell has shown its topology" in brief[brief.index("Limits ") :]
    assert "Verdict withheld: the run is not at its declared end" in text
    assert "1 of 8 declared blocks were not started" in text


def test_everything_includes_the_methods_that_do_not_decide(loaded: Load) -> None:
    """`--all` keeps the table as it is; below it each arm by other methods, said not to decide."""
    text = all_as_text(loaded(GOLDEN_STORY))
    below = text.removeprefix(GOLDEN)

    assert text.startswith(GOLDEN)
    assert "not used for the verdict" in " ".join(below.split())
    assert all(f"\n{arm}: Hodges-Lehmann +" in below for arm in ARMS[1:])
    assert max(map(len, text.splitlines())) < 80


def test_what_is_shown_without_asking_ends_with_the_answer(loaded: Callable[[Story], LoadedRun]) -> None:
    """The page's first sentence, below the figures that decide; the others wait for --all."""
    run = loaded(Story())
    brief, whole = brief_as_text(run), all_as_text(run)
    last = " ".join(brief[brief.index("Answer  ") :].split())

    said = "Answer " + "".join(words for words, _ in answer(run, run.result.primary[0]))
    assert last.startswith(f"{said} Limits ")
    assert "(Q06)" in last
    assert " ".join(whole.split()).endswith(said)
    assert "distance to memory shows little." in " ".join(whole.split())
    assert "Secondary" in whole
    assert "Secondary" not in brief
    assert "all sizes" in brief
    assert max(map(len, brief.splitlines())) <= 80


def test_one_boot_has_no_spread_to_warn_of(loaded: Load) -> None:
    """Neither a range of one boot nor columns that vary more than others are spoken of."""
    text = " ".join(brief_as_text(loaded(Story(text=study_text(sizes="500", blocks=1)))).split())

    assert "too few boots (1 of 6)" in text
    assert "varied more" not in text
    assert "(n = 1)" not in text
    assert "n = 2" in text  # the reference, which ran twice
