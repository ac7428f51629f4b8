"""How far a result goes: what limits it, what was not run, which checks raised no alarm."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from vnuma.analysis.checks import NOT_RUN, AaCheck, ControlCheck, Drift, Slope
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.result import Analysis, Caution, FigureRow
from vnuma.analysis.wording import a_a_sentence, percent_up
from vnuma.domain.study.order import SCOPE, declaration, deviations, earlier_runs
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import CO_STOP_LIMIT, READY_LIMIT, share_of_vcpu
from vnuma.domain.workloads.metric import sized
from vnuma.report.model.arm_topologies import ArmTopology, topologies_of
from vnuma.report.model.guest import PASSES, left_out
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import ORDER_WORDS, drift_words, lead, progress_words
from vnuma.store.rows import Attempt, Outcome, Vm
from vnuma.words.bounded_json import mapping
from vnuma.words.plain_text import capitalised, counted, filled, listed
from vnuma.words.provenance import why_no_hardware
from vnuma.workloads.call_volume.settings import BUSIEST, OTHER_SCHEDULERS, is_saturated

MEANS = "More vCPUs answer no more calls than this one can take in."


def saturation_sentences(loaded: LoadedRun, vm: str) -> Iterator[str]:
    """A sentence for each form with such a CPU: `noop: one CPU was saturated in 16-way from 8 connections
    (98%, the others 7%).`, with the figures of the largest size.
    """
    mine = [row for row in loaded.result.figures if row.vm == vm]
    for form, rows in groupby(mine, key=lambda row: row.form):
        known = {(row.metric.name, row.size): row for row in rows}
        said = []
        for arm in loaded.study.labels:
            if loads := list(_loads(known, arm)):
                since, (_, busiest, others) = loads[0][0], loads[-1]
                word = loaded.result.design.size_word
                said.append(f"{arm} from {since} {word} ({busiest:.0f}%, the others {others:.0f}%)")
        if said:
            yield f"{form}: one CPU was saturated in {'; '.join(said)}."


def saturation_text(loaded: LoadedRun, vm: str, width: int) -> Iterator[str]:
    """The same for the terminal as one paragraph; empty without such a CPU."""
    found = [*saturation_sentences(loaded, vm)]
    if found:
        lines = (filled(one, width, first="  ", then="    ") for one in found)
        yield "\n".join([filled(f"One busy CPU. {MEANS}", width, then="  "), *lines])


def _loads(known: dict[tuple[str, int], FigureRow], arm: str) -> Iterator[tuple[int, float, float]]:
    """The sizes at which the arm has such a CPU, in ascending order."""
    for (name, size), row in sorted(known.items()):
        others = known.get((OTHER_SCHEDULERS.name, size))
        if name != BUSIEST.name or others is None:
            continue
        busiest, rest = _median(row, arm), _median(others, arm)
        if busiest is not None and rest is not None and is_saturated(busiest, rest):
            yield size, busiest, rest


def _median(row: FigureRow, arm: str) -> float | None:
    return next((cell.median for cell in row.cells if cell.arm == arm), None)


READY = "cpu.ready.summation"
CO_STOP = "cpu.costop.summation"


@dataclass(frozen=True)
class Contention:
    """The highest 20 seconds of any boot, as shares of one vCPU's time; `boots` had a sample."""

    boots: int
    ready: float
    co_stop: float | None
    """None where vSphere has no such counter."""

    @property
    def contended(self) -> bool:
        """Whether either exceeds its usual threshold."""
        return self.ready > READY_LIMIT or (self.co_stop or 0.0) > CO_STOP_LIMIT

    @property
    def words(self) -> str:
        """As in "CPU ready at most 0.4% of a vCPU's time, co-stop at most 0.0%, in any 20 s (48 boots)"."""
        co_stop = "not known" if self.co_stop is None else f"at most {self.co_stop * 100:.1f}%"
        return (
            f"CPU ready at most {self.ready * 100:.1f}% of a vCPU's time, co-stop {co_stop}, in any 20 s "
            f"({counted(self.boots, 'boot')})"
        )


def contention(loaded: LoadedRun, vm: Vm) -> Contention | str:
    """Over every boot of a VM, or why it is unknown."""
    boots = loaded.attempt_facts(vm, "counters", "vm").values()
    seen = [boot for boot in boots if isinstance(boot, Mapping) and READY in boot]
    if not seen:
        reasons = [str(boot["not_evaluated"]) for boot in boots if "not_evaluated" in boot]
        return reasons[-1] if reasons else "vSphere's counters were not read"
    vcpus = loaded.study.vcpus or 1  # only machines have none, and vSphere has no counters for them
    stopped = [_share(boot[CO_STOP], vcpus) for boot in seen if CO_STOP in boot]
    ready = max(_share(boot[READY], vcpus) for boot in seen)
    return Contention(len(seen), ready, max(stopped, default=None))


def _share(series: Mapping[str, Any], vcpus: int) -> float:
    """The highest sample's milliseconds of all vCPUs, as a share of one vCPU's time."""
    return share_of_vcpu(float(series["highest"]), float(series["interval_s"]), vcpus)


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
    """Judge a VM's valid attempts by what was stored of each boot."""
    if not loaded.study.shapes:
        valid = len(loaded.attempts_of(vm, Outcome.VALID))
        return EffectiveCount(len(loaded.due_cells(vm)), valid, 0, loaded.study.workload.proven)
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
    before = earlier_runs(plan)
    now = declaration(loaded.study, loaded.study_sha256, before)
    begun = min((attempt.started_at for attempt in loaded.attempts), default=None)
    late = begun is not None and max(fact.at for fact in facts) > begun
    differs = [*deviations(plan, sha256, now), *(["it was stored after the first boot"] if late else [])]
    return PlanCheck(sha256, (*differs, *_short(loaded)), before)


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


def warnings_of(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> Iterator[tuple[str, Caution]]:
    """Each with its severity: the analysis' cautions, then preflight's and the run's findings; worst first.

    Findings of preflight that limit the result are in `limits` instead.
    """
    yield from (("warn", item) for item in analysis.cautions)
    every = loaded.vm_facts(vm, "preflight").values()
    rank = ["block", "warn", "info"]
    for item in sorted(every, key=lambda item: rank.index(item["severity"])):
        if not limits_the_result(item):
            yield item["severity"], Caution(item["id"], item["what"], item.get("fix") or "")
    for key, value in loaded.vm_facts(vm, "warning").items():
        yield "warn", Caution(key, str(value), "See docs and the log of the run.")
    busy = sum(map(_busy, loaded.attempt_facts(vm, "boot", "ready").values()))
    if busy:
        what = f"{busy} boots were measured although the guest did not become quiet."
        yield "warn", Caution("busy_guest", what, "Raise quiet.timeout_s, or find what is running there.")


def _busy(ready: object) -> bool:
    return mapping(mapping(ready).get("quietness")).get("quiet") is False


StatementKind = Literal["alarm", "limits it", "not run", "not evaluated", "no alarm", "holds"]

NO_HARDWARE = "No hardware was measured."
NETWORK_WAIT = "ASYNC_NETWORK_IO"
_MOSTLY = 0.5


@dataclass(frozen=True)
class Statement:
    """One line of the block: `kind` is its label, `what` the point in short, `text` the rest.

    `rule`: the design rule that found it, or "".
    """

    kind: StatementKind
    what: str
    text: str
    rule: str = ""

    @property
    def short(self) -> str:
        """As in "The input fits the processor's cache (Q06)"."""
        return self.what.rstrip(".:") + (f" ({self.rule})" if self.rule else "")


def limit_statements(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> list[Statement]:
    """Every statement about one VM's primary analysis, limitations first."""
    statements = [
        *_simulated(loaded),
        *_passes(loaded, vm),
        *_progress(loaded, analysis),
        *_workload(loaded, vm, analysis),
        *(
            Statement("limits it", "One CPU is the limit.", f"{sentence} {MEANS}")
            for sentence in saturation_sentences(loaded, vm.name)
        ),
        *_same_nodes(loaded.study, topologies_of(loaded, vm)),
        _a_a(loaded, analysis),
        _control(analysis),
        _order(loaded, analysis),
        *([_sentinel(analysis)] if "database" in loaded.study.workload.needs else []),
        *([_contention(loaded, vm)] if loaded.study.shapes else []),
        _effective(loaded, vm),
        _restored(vm),
    ]
    order: tuple[StatementKind, ...] = ("alarm", "limits it", "not run", "not evaluated", "no alarm", "holds")
    return sorted(statements, key=lambda item: order.index(item.kind))


def limiting(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> list[Statement]:
    """Statements that limit the verdict, without simulation, which every output shows in its first line."""
    every = limit_statements(loaded, vm, analysis)
    return [item for item in every if item.kind in ("alarm", "limits it") and item.what != NO_HARDWARE]


def _simulated(loaded: LoadedRun) -> Iterator[Statement]:
    if loaded.simulated:
        yield Statement("limits it", NO_HARDWARE, why_no_hardware(loaded.simulated))


def _passes(loaded: LoadedRun, vm: Vm) -> Iterator[Statement]:
    """What the replicates are, and which arms were impossible."""
    if loaded.study.replicate == "pass":
        yield Statement("limits it", "Passes, not boots.", PASSES)
    for label, why in left_out(loaded, vm).items():
        yield Statement("not run", f"Arm {label} was left out.", str(why))


def _progress(loaded: LoadedRun, analysis: Analysis) -> Iterator[Statement]:
    if loaded.partial:
        words = f"{progress_words(loaded)}; every figure on this page will change."
        yield Statement("limits it", "The run has not ended.", words)
    if analysis.ended_by:
        words = f"{capitalised(analysis.ended_by)}."
        if loaded.study.design.stop == "blocks":
            words += " Effects were not considered."
        yield Statement("holds", "It ended by its declared rule.", words)


def _workload(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> Iterator[Statement]:
    measured = _client_time(loaded, analysis)
    if measured:
        yield measured
    for finding in loaded.vm_facts(vm, "preflight").values():
        known = finding["id"] == "Q01" and measured is not None
        if limits_the_result(finding) and not known:
            what, more = lead(finding["what"])
            yield Statement(
                "limits it", what, f"{more} {finding['fix']} ({finding['id']})".lstrip(), finding["id"]
            )
    plans = loaded.attempt_facts(vm, "plan", analysis.form).values()
    spools = {name for plan in plans for name in plan.get("spools") or ()}
    if spools:
        names = listed(sorted(spools))
        text = f"The plan reads one side of the join back from tempdb ({names}), not from the tables."
        yield Statement("limits it", "The time includes a worktable in tempdb.", text)
    for ran in loaded.executions:
        if (ran.vm, ran.form) == (vm.name, analysis.form) and len(ran.plans) > 1:
            text = (
                f"Form {ran.form} ran with {len(ran.plans)} plans: a difference may come from the optimiser."
            )
            yield Statement("limits it", "The plan changed.", text)


def _client_time(loaded: LoadedRun, analysis: Analysis) -> Statement | None:
    """The measured share of the client in the primary form's time, so that Q01 need not guess.

    The same join without sending its rows shows more than wait statistics: filling a packet is the server's
    CPU time, and only a client that is too slow shows up as a wait.
    """
    mine = [item for item in loaded.waits if (item.vm, item.form) == (analysis.vm, analysis.form)]
    share = mine[0].of(NETWORK_WAIT) if mine else None
    waited = "" if share is None else f"; waiting for the network ({NETWORK_WAIT}) was {share * 100:.0f}%"
    streams = (loaded.study.workload.name, analysis.form) == ("cross_join", "client") and analysis.points
    server = loaded.result.analysis(analysis.vm, "server", analysis.metric) if streams else None
    if server is None or not server.points:
        if share is None or share < _MOSTLY:
            return None
        spent = f"{share * 100:.0f}% of the elapsed time of form {analysis.form}"
        text = f"{spent} was spent waiting for the network."
        return Statement("limits it", "The clock mostly timed the client.", text)
    ours, theirs = analysis.table[-1].cells[0].median, server.table[-1].cells[0].median
    if ours is None or theirs is None or theirs > ours * _MOSTLY:
        return None
    at = sized(analysis.table[-1].size, loaded.result.design.size_word)
    text = (
        f"The same join without its rows (form server) took {theirs / ours * 100:.0f}% of the time of form "
        f"client ({loaded.study.reference}, {at}){waited}. Read the server form too."
    )
    return Statement("limits it", "Most of the time went into sending rows.", text)


def _same_nodes(study: Study, arms: list[ArmTopology]) -> Iterator[Statement]:
    """Arms with the same number of vNUMA nodes in the guest, used alike by the workload."""
    groups: dict[tuple[int, object], list[str]] = defaultdict(list)
    for arm in arms:
        if len(arm.seen) == 1:
            workload = study.workload_of(arm.arm)
            groups[arm.seen[0][0], workload.chosen(workload.node_factors)].append(arm.arm)
    for (nodes, _), names in groups.items():
        if len(names) > 1:
            what = f"{listed(names)} gave the guest the same number of vNUMA nodes ({nodes})."
            yield Statement(
                "limits it", what, "A difference between them cannot come from the number of nodes."
            )


def _a_a(loaded: LoadedRun, analysis: Analysis) -> Statement:
    check = analysis.a_a
    words = a_a_words(analysis, loaded.study.reference)
    if not isinstance(check, AaCheck):
        kind: StatementKind = "not evaluated" if loaded.study.design.a_a else "not run"
        return Statement(kind, "The same against itself (A/A).", f"{words}.")
    floor = f"Two equal columns differ by {percent_up(check.noise_floor)} at most in 95% of such runs."
    if check.state == "note":
        what = "The reference differs a little from itself (A/A)."
        return Statement("limits it", what, f"{words}. {floor}")
    kind = "alarm" if check.state == "alarm" else "no alarm"
    return Statement(kind, "The same against itself (A/A).", f"{words}. {floor}")


def _control(analysis: Analysis) -> Statement:
    check = analysis.positive_control
    words = f"{capitalised(control_words(analysis))}."
    if isinstance(check, ControlCheck):
        return Statement("holds" if check.passed else "alarm", "A known effect.", words)
    text = f"{words} Nothing in this run shows that it would have detected a known effect."
    return Statement("not run", "A known effect.", text)


def _order(loaded: LoadedRun, analysis: Analysis) -> Statement:
    design = loaded.study.design
    if design.order == "fixed":
        text = (
            "Every block ran the arms in the same order: drift looks like an effect, so there is no verdict."
        )
        return Statement("alarm", "Order and drift.", text)
    blocks = counted(analysis.blocks, "block")
    order = ORDER_WORDS[design.order].removeprefix("in ")
    drift = drift_words(analysis.drift)
    words = f"{blocks} in {order} (seed {loaded.run.seed}); {drift[:1].lower()}{drift[1:]}"
    kind = _alarming(analysis.drift)
    return Statement(kind, "Times drifted." if kind == "limits it" else "Order and drift.", words)


def _sentinel(analysis: Analysis) -> Statement:
    """The host's drift, by a query that no arm should affect."""
    watched, what = analysis.sentinel, "The host itself (sentinel)."
    if not isinstance(watched, Drift):
        kind: StatementKind = "not run" if watched == NOT_RUN else "not evaluated"
        return Statement(kind, what, f"{capitalised(watched.reason)}.")
    kind = _alarming(watched)
    what = "The host drifted (sentinel)." if kind == "limits it" else what
    return Statement(kind, what, drift_words(watched))


def _contention(loaded: LoadedRun, vm: Vm) -> Statement:
    """Whether other work on the host took processor time."""
    found, what = contention(loaded, vm), "Processor time on the host."
    if isinstance(found, str):
        return Statement("not evaluated", what, f"{capitalised(found)}.")
    if found.contended:
        return Statement("limits it", "The VM waited for the host's processors.", f"{found.words}.")
    return Statement("no alarm", what, f"{found.words}.")


def _alarming(drift: Drift | NotEvaluated) -> StatementKind:
    slopes = (drift.between_blocks, drift.within_blocks) if isinstance(drift, Drift) else ()
    known = [slope for slope in slopes if isinstance(slope, Slope)]
    return "not evaluated" if not known else "limits it" if any(s.alarm for s in known) else "no alarm"


def _effective(loaded: LoadedRun, vm: Vm) -> Statement:
    found = effective_count(loaded, vm)
    lost = lost_words(loaded, vm)
    more = f" {lost}." if lost else ""
    if not loaded.study.shapes:
        text = f"{found.words}.{more}"
        if found.as_intended == found.planned:
            return Statement("holds", "Placement.", text)
        return Statement("limits it", "Not every cell has proven its placement.", text)
    if found.as_intended == found.planned:
        server = " and in SQL Server" if "sql_server" in loaded.study.workload.needs else ""
        text = f"{found.words}: in vSphere's read-back, in the guest{server}.{more}"
        return Statement("holds", "Effective topology.", text)
    shown = found.as_intended == len(loaded.attempts_of(vm, Outcome.VALID))
    what = "Not every cell counts." if shown else "Not every cell has shown its topology."
    return Statement("limits it", what, f"{found.words}.{more}")


def _restored(vm: Vm) -> Statement:
    """Whether the VM is as it was before the run."""
    words = str(mapping(vm.restore_detail).get("words") or "")
    first = words.splitlines()[0] if words else ""
    if vm.restored_at is not None:
        when = f"{vm.restored_at:%Y-%m-%d %H:%M} UTC"
        return Statement("holds", "Restored.", f"{first or vm.restore_outcome} ({when}).")
    if vm.restore_outcome is not None:
        return Statement(
            "alarm", "NOT restored.", f"{first or vm.restore_outcome} Next: vnuma restore {vm.name}"
        )
    if vm.baseline_at is None:
        return Statement("holds", "Not changed yet.", f"{vm.name} is as it was.")
    return Statement(
        "not run", "Restored.", f"{vm.name} is still under study by this run, which restores it at its end."
    )
