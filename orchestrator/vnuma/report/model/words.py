"""Texts that the terminal and the page share. `analysis.wording` has those about figures."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence

from vnuma.analysis.checks import ControlCheck, Drift, Slope
from vnuma.analysis.compare import Interval
from vnuma.analysis.conclusions import differing_sizes_sentence, undecided
from vnuma.analysis.records import Measure, NotEvaluated
from vnuma.analysis.result import Analysis, ArmResult
from vnuma.analysis.verdict import Label, Verdict, Withheld
from vnuma.analysis.wording import (
    decimals,
    headline,
    limits,
    p_words,
    percent_whole,
    sentence,
    signed,
    together,
)
from vnuma.domain.study.order import effort_words
from vnuma.domain.study.study import Order
from vnuma.domain.workloads.metric import none_valid
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import CellState, Outcome
from vnuma.words.plain_text import capitalised, counted, listed, plural
from vnuma.words.validation import percent_text

ORDER_WORDS: Mapping[Order, str] = {
    "randomised": "in random order",
    "latin_square": "in randomised Latin squares",
    "williams": "in randomised Williams squares",
    "fixed": "in FIXED order",
}


def named(measure: Measure) -> str:
    """A measure at the beginning of a sentence: "Elapsed time"."""
    return capitalised(measure.name)


def direction(measure: Measure) -> str:
    """Which direction is better, for tables and plots."""
    return "lower is faster" if measure.better == "lower" else "higher is better"


def faster_side(measure: Measure) -> str:
    """The same for a difference drawn from left to right."""
    return "left is faster" if measure.better == "lower" else "right is faster"


def lead(text: str) -> tuple[str, str]:
    """A finding's topic, up to its first colon or full stop, and the rest."""
    found = re.match(r"(.+?[:.])\s+(.+)", text, re.DOTALL)
    return (found[1], found[2]) if found else (text, "")


def difference_words(verdict: Verdict, decimals: int) -> str:
    """`+1.5% (0.3 to 2.7)`, without an interval the ratio alone."""
    if verdict.ratio is None:
        return none_valid(verdict.replicate)
    difference = signed(verdict.ratio, decimals)
    return f"{difference} ({limits(verdict.interval, decimals)})" if verdict.interval else difference


def differences_words(verdicts: Sequence[Verdict]) -> list[str]:
    """The same of a row, with the decimals that tell its intervals apart."""
    decimals = places([one.interval for one in verdicts], verdicts[0].margin) if verdicts else []
    return [difference_words(one, shown) for one, shown in zip(verdicts, decimals, strict=True)]


def places(intervals: Iterable[Interval | None], margin: float) -> list[int]:
    """Decimals for each interval of a row, more if one needs them or two would look the same."""
    shown = list(intervals)
    needed = [1 if item is None else decimals([item], margin) for item in shown]
    texts = [None if item is None else limits(item, n) for item, n in zip(shown, needed, strict=True)]
    for index, text in enumerate(texts):
        alike = [
            other
            for other, twin in enumerate(texts)
            if text and twin == text and shown[other] != shown[index]
        ]
        for other in alike:
            needed[other] = needed[index] = 2
    return needed


def boots_words(analysis: Analysis, reference: str) -> str:
    """How many boots each arm has: `6 boots an arm (12 for 1x16)`, or the range when arms differ."""
    boots = {
        arm: sum(p.arm == arm for p in analysis.points)
        for arm in {p.arm for p in analysis.points} | {reference}
    }
    own = boots.pop(reference)
    others = sorted(set(boots.values()))
    if not others:
        return f"{counted(own, analysis.replicate)} of {reference}"
    if len(others) == 1:
        same = own == others[0]
        each = f"{counted(others[0], analysis.replicate)} an arm"
        return each if same else f"{each} ({own} for {reference})"
    return f"{others[0]} to {others[-1]} {plural(analysis.replicate)} an arm ({own} for {reference})"


def progress_words(loaded: LoadedRun) -> str:
    """`17 of 48 cells valid`."""
    valid = sum(cell.state is CellState.VALID for cell in loaded.cells)
    wanted = sum(cell.state is not CellState.SKIPPED for cell in loaded.cells)
    return f"{valid} of {wanted} cells valid"


def verdict_words(verdict: Verdict) -> str:
    """A verdict as text; only the estimate if it is withheld."""
    if verdict.withheld and verdict.ratio is not None and verdict.interval is not None:
        shown = decimals([verdict.interval], verdict.margin)
        return f"{headline(verdict)}; measured {difference_words(verdict, shown)}"
    return sentence(verdict)


def verdict_kind(verdict: Verdict) -> str:
    """The verdict's style class: `too-few-boots`, for instance; `withheld` without one."""
    return "withheld" if verdict.withheld else str(verdict.label).replace(" ", "-")


def answer(loaded: LoadedRun, analysis: Analysis) -> list[tuple[str, bool]]:
    """A report's first sentence, as pieces of text; True marks those to emphasise.

    Only arms that are fastest or equivalent to it are recommended, and only by `analysis.conclusions`.
    """
    reference = loaded.study.reference
    if not analysis.points:
        return [("No cell gave a valid measurement", True), (": nothing can be said yet.", False)]
    if analysis.withheld:
        verdict = analysis.arms[0].verdict if analysis.arms else None
        words = headline(verdict) if verdict else f"Verdict withheld: {analysis.withheld}"
        if analysis.withheld is Withheld.NOT_ENDED:
            words += f", {done_words(loaded, analysis)}"
        return [(words, True), (". The figures are as measured, without a verdict.", False)]
    control = loaded.study.control_arm
    arms = [arm for arm in analysis.arms if arm.arm != control]
    rest = [arm for arm in arms if arm.arm not in _told(analysis, reference)]
    recommended, not_yet = _recommended(analysis, reference), _not_yet(arms)
    pieces = recommended or not_yet
    fastest = bool(analysis.recommended) and reference not in analysis.recommended
    text = " ".join(_against(rest, reference, fastest=fastest, told=bool(not_yet) and not recommended))
    if text:
        pieces.append((f" {text}" if pieces else text, not pieces))
        if any(arm.verdict.label is not Label.TOO_FEW and not arm.verdict.withheld for arm in rest):
            pieces.append((" In brackets: 95% intervals.", False))
    alone = [item for item in analysis.differing_sizes if item.arm != control]
    if alone:
        pieces.append((f" {differing_sizes_sentence(alone, loaded.result.design.size_word)}", False))
    hidden = unseen_states([arm.verdict for arm in analysis.arms])
    pieces += [(f" {hidden}", False)] if hidden else []
    if analysis.ended_by and loaded.study.design.stop == "decided":
        # As in "Decided after 27 of at most 48 boots."; ended, where some arm has no verdict.
        most = loaded.result.design.blocks * _columns(loaded, analysis)
        ended = "Ended" if undecided(analysis.arms) else "Decided"
        used = f"{len(analysis.points)} of at most {most} {plural(analysis.replicate)}"
        pieces.append((f" {ended} after {used}.", False))
    needed = max((arm.verdict.blocks_needed or 0 for arm in arms), default=0)
    pieces += (
        [(f" {counted(needed, 'block')}: {_effort(loaded, analysis, needed)}.", False)] if needed else []
    )
    if not analysis.at_declared_end:
        pieces.insert(0, (f"{done_words(loaded, analysis)}. ", False))
    pieces = pieces or [("Nothing to compare: the run has cells of the reference arm alone.", True)]
    blind = blindness(analysis)
    return [(blind, True), (" ", False), *pieces] if blind else pieces


def _columns(loaded: LoadedRun, analysis: Analysis) -> int:
    """Boots of a whole block."""
    return len(loaded.result.design.columns) - sum(arm.verdict.left_out for arm in analysis.arms)


def _effort(loaded: LoadedRun, analysis: Analysis, blocks: int) -> str:
    """What so many blocks take at this run's pace."""
    valid = (one for one in loaded.attempts if one.outcome is Outcome.VALID and one.ended_at)
    took = [(one.ended_at - one.started_at).total_seconds() for one in valid if one.ended_at]
    boots = blocks * _columns(loaded, analysis)
    return effort_words(loaded.study, boots, boots * statistics.median(took))


def answer_words(loaded: LoadedRun, analysis: Analysis) -> str:
    """The same as one text."""
    return "".join(text for text, _ in answer(loaded, analysis))


def done_words(loaded: LoadedRun, analysis: Analysis) -> str:
    """As in "7 of 12 declared blocks are complete"."""
    planned = loaded.study.design.most_blocks
    return f"{analysis.complete_blocks} of {planned} declared blocks are complete"


def unseen_states(verdicts: Iterable[Verdict]) -> str:
    """What "equivalent" leaves open: boots in another state, of the arm that may have most of them."""
    found = [verdict for verdict in verdicts if verdict.unseen is not None]
    if not found:
        return ""
    most = max(found, key=lambda verdict: verdict.unseen or 0.0)
    share, many = percent_whole(most.unseen or 0.0), plural(most.replicate)
    return (
        f"'Equivalent' covers only the {many} seen: a slower or faster state in up to {share} of an arm's "
        f"{many} could have been missed."
    )


def blindness(analysis: Analysis) -> str:
    """The warning at the top if the positive control showed nothing; else empty."""
    check = analysis.positive_control
    if not isinstance(check, ControlCheck) or check.passed:
        return ""
    return (
        f"The positive control {check.arm} was not found {check.expected}: this run may have missed other "
        "effects too, and calls no other arm equivalent."
    )


def _told(analysis: Analysis, reference: str) -> tuple[str, ...]:
    """Recommended arms whose verdicts the recommendation itself tells."""
    verdicts = {arm.arm: arm.verdict.label for arm in analysis.arms}
    names = analysis.recommended
    fastest = [verdicts.get(name) for name in names] == [Label.FASTER]
    return names if fastest or _equivalent_to(analysis, reference) else ()


def _equivalent_to(analysis: Analysis, reference: str) -> bool:
    """Whether the recommended arms are the reference and arms equivalent to it."""
    verdicts = {arm.arm: arm.verdict for arm in analysis.arms}
    first, *others = analysis.recommended or ("",)
    return first == reference and all(verdicts[name].label is Label.EQUIVALENT for name in others)


def _recommended(analysis: Analysis, reference: str) -> list[tuple[str, bool]]:
    names = analysis.recommended
    if not names:
        return []
    verdicts = {arm.arm: arm.verdict for arm in analysis.arms}
    use: list[tuple[str, bool]] = [("Use ", False), (listed(names, "or"), True)]
    margin = percent_text(analysis.margin)
    if names == (reference,):
        ahead = f" no arm is more than {margin} ahead of it." if undecided(analysis.arms) else ""
        return [*use, (f":{ahead}", False)]
    if _equivalent_to(analysis, reference):
        which = "the two are " if len(names) == 2 else f"to {reference} the others are "
        return [*use, (f": {which}", False), (headline(verdicts[names[1]]), True), (".", False)]
    if len(names) > 1:
        which = "neither" if len(names) == 2 else "none"
        return [*use, (f": {which} is more than {margin} behind the best.", False)]
    verdict = verdicts[names[0]]
    fastest = verdict.label is Label.FASTER
    why = (
        f"{headline(verdict)} than {reference}"
        if fastest
        else f"it is not more than {margin} behind the best"
    )
    return [*use, (f": {why}.", False)]


def _not_yet(arms: Sequence[ArmResult]) -> list[tuple[str, bool]]:
    """That nothing is recommended yet although some arms have a verdict, with the undecided arms."""
    names = undecided(arms)
    if not names or len(names) == len(arms):
        return []
    open_arms = _sharing(arms, Label.UNDECIDED)
    return [("No recommendation yet", True), (f": {together(open_arms)}." if open_arms else ".", False)]


def _against(arms: Sequence[ArmResult], reference: str, *, fastest: bool, told: bool) -> list[str]:
    """The arms that are not recommended, one sentence per verdict.

    `told`: the undecided ones were named before.
    """
    made = []
    for word in (Label.FASTER, Label.EQUIVALENT, Label.SLOWER, *([] if told else [Label.UNDECIDED])):
        sharing = _sharing(arms, word)
        if sharing:
            than = f" than {reference}." if fastest and word is not Label.UNDECIDED else "."
            than = f" to {reference}." if word is Label.EQUIVALENT else than
            made.append(together(sharing) + than)
    few = [arm for arm in arms if arm.verdict.label is Label.TOO_FEW]
    known = [arm for arm in few if arm.verdict.ratio is not None]
    if len(known) > 1:
        made.append(together(_sharing(known, Label.TOO_FEW)) + ".")
        few = [arm for arm in few if arm not in known]
    held = [arm for arm in arms if arm.verdict.withheld]
    return made + [f"{arm.arm}: {headline(arm.verdict)}." for arm in (*held, *few)]


def _sharing(arms: Sequence[ArmResult], word: Label) -> list[tuple[str, Verdict]]:
    """Arms of that verdict by name, without withheld verdicts."""
    return [(arm.arm, arm.verdict) for arm in arms if arm.verdict.label is word and not arm.verdict.withheld]


def drift_words(drift: Drift | NotEvaluated) -> str:
    """Both trends as text."""
    if isinstance(drift, NotEvaluated):
        return f"Drift was not evaluated: {drift.reason}."
    between = _slope("block means moved by {} per block", drift.between_blocks, "trend over blocks")
    within = _slope(
        "figures moved by {} from cell to cell within blocks", drift.within_blocks, "trend within blocks"
    )
    return f"{capitalised(between)}; {within}."


def _slope(text: str, slope: Slope | NotEvaluated, name: str) -> str:
    if isinstance(slope, NotEvaluated):
        return f"{name}: not evaluated, {slope.reason}"
    state = "alarm" if slope.alarm else "no alarm"
    return f"{text.format(signed(1 + slope.slope, 2))} ({p_words(slope.p)}, {state})"
