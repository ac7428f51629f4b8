"""What a result rests on: its declared plan, checks of the instrument, topologies, warnings."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vnuma.analysis.instrument_checks import AaCheck, ControlCheck
from vnuma.analysis.result import Analysis
from vnuma.analysis.wording import a_a_sentence
from vnuma.domain.study.declaration import SCOPE, Declared, declaration, deviations
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import lead
from vnuma.store.rows import Attempt, Fact, Outcome, Vm
from vnuma.words.plain_text import counted, listed


@dataclass(frozen=True)
class EffectiveCount:
    """Of the `planned` cells that no rule left out: how many had the intended topology.

    `unseen` could not be judged.
    """

    planned: int
    as_intended: int
    unseen: int
    intended: str = "effective as intended"

    @property
    def words(self) -> str:
        """As in "36 of 36 cells effective as intended"."""
        text = f"{self.as_intended} of {self.planned} cells {self.intended}"
        return f"{text}; {self.unseen} not evaluated" if self.unseen else text


def effective_count(loaded: LoadedRun, vm: Vm) -> EffectiveCount:
    """Judge a VM's valid attempts by what was stored of each boot.

    A pass is valid only with its placement proven.
    """
    if not loaded.study.shapes:
        valid = len(loaded.attempts_of(vm, Outcome.VALID))
        return EffectiveCount(len(loaded.due_cells(vm)), valid, 0, "with the file's pages proven in place")
    documents = [attempt.effective for attempt in loaded.attempts_of(vm, Outcome.VALID)]
    seen = [document for document in documents if isinstance(document, dict)]
    as_intended = sum(not document.get("mismatches") for document in seen)
    return EffectiveCount(len(loaded.due_cells(vm)), as_intended, len(documents) - len(seen))


def a_a_words(analysis: Analysis, reference: str) -> str:
    """The A/A check in one sentence, or why there is none."""
    check = analysis.a_a
    if isinstance(check, AaCheck):
        return a_a_sentence(check, reference)
    return f"{reference} against itself (A/A): not evaluated, {check.reason}"


def control_words(analysis: Analysis) -> str:
    """The positive control: passed, failed, or not run."""
    check = analysis.positive_control
    if isinstance(check, ControlCheck):
        found = "was found" if check.passed else "was NOT found"
        return f"positive control {check.arm} {found} {check.expected}"
    return (
        "positive control not run"
        if check.reason.startswith("not run")
        else f"positive control: {check.reason}"
    )


@dataclass(frozen=True)
class Spread:
    """How far an arm's boots are from their median, over all sizes; ratios minus 1."""

    arm: str
    boots: int
    low: float
    high: float

    @property
    def words(self) -> str:
        """As in "1x16 -0.4 to 1.2% (n = 12)"."""
        low, high = (round(share * 100, 1) + 0.0 for share in (self.low, self.high))  # never "-0.0"
        return f"{self.arm} {low} to {high}% (n = {self.boots})"


def spreads(analysis: Analysis) -> list[Spread]:
    """The arms with a spread, in the study's order, the reference's two columns together."""
    values: dict[str, list[float]] = defaultdict(list)
    for point in analysis.points:
        values[point.arm].append(point.value)
    made = []
    for arm in [cell.arm for cell in analysis.table[0].cells]:
        if len(values[arm]) > 1:
            middle = statistics.median(values[arm])
            low, high = min(values[arm]) / middle - 1, max(values[arm]) / middle - 1
            made.append(Spread(arm, len(values[arm]), low, high))
    return made


def lost_words(loaded: LoadedRun, vm: Vm) -> str:
    """How many attempts did not count, by outcome; empty if all did."""
    lost = loaded.not_counted(vm)
    if not lost:
        return ""
    outcomes = Counter(str(attempt.outcome) for attempt in lost)
    kinds = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    return f"{counted(len(lost), 'attempt')} did not count ({kinds}): kept in the store, never averaged in"


def attempt_words(attempt: Attempt) -> str:
    """One attempt that did not count, as in "block 3, 4x4, attempt 1: failed, connection_dropped: ..."."""
    detail = " ".join((attempt.detail or "").split())
    text = f"block {attempt.block}, {attempt.label}, attempt {attempt.number}: {attempt.outcome}"
    text += f", {attempt.reason}" if attempt.reason and attempt.reason != str(attempt.outcome) else ""
    return f"{text}: {detail}" if detail else text


def repeated(loaded: LoadedRun, attempt: Attempt) -> bool:
    """Whether another attempt measured the same cell validly."""
    return any(
        other.cell_id == attempt.cell_id and other.outcome is Outcome.VALID for other in loaded.attempts
    )


@dataclass(frozen=True)
class PlanCheck:
    """`sha256` of the plan, None if none was stored; `differs` lists deviations from the declaration."""

    sha256: str | None
    differs: tuple[str, ...]
    earlier_runs: tuple[str, ...]

    @property
    def words(self) -> str:
        """As in "as declared (SHA-256 ...); earlier runs of the study: none"."""
        if self.sha256 is None:
            return "none was stored before the first boot"
        found = f"NOT as declared: {'; '.join(self.differs)}" if self.differs else "as declared"
        earlier = listed(self.earlier_runs) or "none"
        return f"{found} (SHA-256 {self.sha256}); earlier runs of the study: {earlier}"


def plan_check(loaded: LoadedRun) -> PlanCheck:
    """Compare the declaration with the present study, method and run."""
    facts = [fact for fact in loaded.facts if fact.scope == SCOPE and fact.vm_id is None]
    stored = {fact.key: fact.value for fact in facts}
    plan, sha256 = stored.get("plan"), stored.get("sha256")
    if not isinstance(plan, dict) or not isinstance(sha256, str):
        return PlanCheck(None, (), ())
    declared = Declared(plan, sha256)
    now = declaration(loaded.study, loaded.study_sha256, declared.earlier_runs)
    differs = (*deviations(declared, now), *_late(loaded, facts), *_short(loaded))
    return PlanCheck(sha256, differs, declared.earlier_runs)


def _late(loaded: LoadedRun, facts: list[Fact]) -> Iterator[str]:
    begun = min((attempt.started_at for attempt in loaded.attempts), default=None)
    if begun is not None and max(fact.at for fact in facts) > begun:
        yield "it was stored after the first boot"


def _short(loaded: LoadedRun) -> Iterator[str]:
    """Blocks that are missing without a declared rule having given them up."""
    if loaded.partial:
        return
    for analysis in loaded.result.primary:
        if analysis.blocks_not_begun:
            yield f"{counted(analysis.blocks_not_begun, 'declared block')} not begun on {analysis.vm}"
        elif not analysis.at_declared_end:
            yield f"the last declared block is not complete on {analysis.vm}"


def limits_the_result(finding: Mapping[str, str]) -> bool:
    """Whether a finding of preflight limits the figures' meaning: it is in `limits`, not a warning."""
    return finding["id"].startswith(("Q", "T04"))


@dataclass(frozen=True)
class Warning_:
    """One warning with its next step."""

    id: str
    severity: str
    what: str
    advice: str

    @property
    def lead(self) -> str:
        """Its topic."""
        return lead(self.what)[0]

    @property
    def rest(self) -> str:
        """The rest of its text."""
        return lead(self.what)[1]


def warnings_of(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> list[Warning_]:
    """The analysis' cautions, then preflight's and the run's findings; worst first in each.

    Findings of preflight that limit the result are in `limits` instead.
    """
    warnings = [Warning_(item.id, "warn", item.what, item.advice) for item in analysis.cautions]
    every = loaded.vm_facts(vm, "preflight").values()
    findings = [finding for finding in every if not limits_the_result(finding)]
    rank = ["block", "warn", "info"]
    findings.sort(key=lambda item: rank.index(item["severity"]))
    warnings += [
        Warning_(item["id"], item["severity"], item["what"], item.get("fix") or "") for item in findings
    ]
    warnings += [
        Warning_(key, "warn", str(value), "See docs and the log of the run.")
        for key, value in loaded.vm_facts(vm, "warning").items()
    ]
    busy = [ready for ready in loaded.attempt_facts(vm, "boot", "ready").values() if _busy(ready)]
    if busy:
        what = f"{len(busy)} boots were measured although the guest did not become quiet."
        warnings.append(
            Warning_("busy_guest", "warn", what, "Raise quiet.timeout_s, or find what is running there.")
        )
    return warnings


def _busy(ready: object) -> bool:
    quietness = ready.get("quietness") if isinstance(ready, dict) else None
    return isinstance(quietness, dict) and quietness.get("quiet") is False
