"""The methods paragraph with the study's own numbers, ready to be quoted."""

from __future__ import annotations

import statistics

from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT, NOT_RUN
from vnuma.analysis.fit import Place
from vnuma.analysis.planning import Costs, Plans, allocate, upper_spread, wanted_width
from vnuma.analysis.records import AnalysisDesign, NotEvaluated
from vnuma.analysis.result import Analysis
from vnuma.analysis.wording import percent_up, plans_sentence, split_sentence
from vnuma.domain.study.study import Design, Study
from vnuma.domain.workloads.metric import Replicate
from vnuma.report.model.guest import PASSES, guest_notes, guest_of, guest_words, left_out
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import ORDER_WORDS, direction, named
from vnuma.store.rows import CellState, Outcome, Vm
from vnuma.words.plain_text import counted, first_line, listed, plural
from vnuma.words.provenance import measured_on
from vnuma.words.validation import percent_text

_FORMS = {
    "client": "rows streamed to the client and discarded there",
    "server": "aggregated in the server, one row sent",
    "into": "rows written to a temporary table",
}

_PLACED: dict[Place, str] = {
    "none": "",
    "linear": " As declared, the place in the block is a linear covariate.",
    "factor": " As squares are designed for, the place in the block is a factor.",
}


def scope(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> str:
    """What the answer applies to; shown with the first sentence."""
    study = loaded.study
    counts = {arm.contrast.boots for arm in analysis.arms if not arm.verdict.left_out}
    boots = _range(counts or {len(analysis.points)}, study)
    order = ORDER_WORDS[study.design.order]
    measure = analysis.measure
    text = (
        f"{named(measure)} in {measure.unit} ({direction(measure)}) of {_work(study)}, form "
        f"{_form(study, analysis.form)}. {_place(loaded, vm)}. {boots} compared per arm, {analysis.blocks} "
        f"of {counted(study.design.most_blocks, 'declared block')} {order}; 95% intervals that hold for all "
        "arms together."
    )
    return f"{text} Measured on {measured_on(loaded.simulated)}." if loaded.simulated else text


def _place(loaded: LoadedRun, vm: Vm) -> str:
    """The target, part by part."""
    study, parts = loaded.study, []
    if study.shapes:
        release = loaded.vm_facts(vm, "host").get("esxi", "of unknown release")
        parts.append(f"VM {vm.name} with {study.vcpus} vCPUs on {vm.esxi_host}, ESXi {release}")
    else:
        named_host = f" ({vm.esxi_host})" if vm.esxi_host != vm.name else ""
        parts.append(f"{vm.name}{named_host}, measured as it is")
    if guest_of(loaded, vm):
        parts.append(guest_words(loaded, vm))
    if "sql_server" in study.workload.needs:
        servers = loaded.attempt_facts(vm, "boot", "server").values()
        version = next((str(server.get("version")) for server in servers), "of unknown version")
        parts.append(f"SQL Server {version}")
    return ", ".join(parts)


def _work(study: Study) -> str:
    """The workload with its sizes, as text."""
    work = study.workload
    if work.name != "cross_join":
        return work.summary()
    low, high = min(work.sizes), max(work.sizes)
    sizes = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"in-memory cross joins, {sizes} {work.size_word}"


def _ran(study: Study) -> str:
    """The same with every size listed."""
    if study.workload.name != "cross_join":
        return study.workload.summary()
    sizes = listed([f"{size:,}" for size in study.workload.sizes])
    return f"in-memory cross joins at {sizes} {study.workload.size_word}"


def _form(study: Study, form: str) -> str:
    """A form with what it does with the rows."""
    return f"{form} ({_FORMS[form]})" if study.workload.name == "cross_join" else form


def methods(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> str:
    """The methods paragraph."""
    study, design = loaded.study, loaded.study.design
    cells = loaded.due_cells(vm)
    valid = sum(cell.state is CellState.VALID for cell in cells)
    a_a = f", the reference {study.reference} run twice in each block as an A/A check" if design.a_a else ""
    arms = [label for label in study.labels if label not in left_out(loaded, vm)]
    shaped = f" of a {study.vcpus}-vCPU VM" if study.shapes else ""
    unless = "; sockets x cores per socket unless named" if study.shapes else ""
    parts = [
        f"{counted(len(arms), 'arm')}{shaped} ({', '.join(arms)}{unless}) were compared in "
        f"{counted(analysis.blocks, 'block')}: complete blocks {ORDER_WORDS[design.order]} "
        f"(seed {loaded.run.seed}){a_a}.{_stopping(design, analysis)}",
        f"For each of the {len(cells)} cells ({valid} valid) {_REPEATED[study.replicate]}",
        f"A cell ran {_ran(study)}{_maxdop(study)}, with "
        f"{counted(design.warmups, 'discarded warm-up')} and {counted(design.iterations, 'timed iteration')}"
        f"{_clocked(analysis)}",
        *map(first_line, study.workload.steps()),
        *guest_notes(loaded, vm),
        _controls_text(loaded, analysis),
        "The cell value is the mean over sizes of the logarithm of the median iteration; the unit of "
        f"replication is the {study.replicate}, not the iteration.",
        _error(analysis, loaded.result.design),
        _equivalence(analysis),
        _power(analysis),
    ]
    return " ".join(part for part in parts if part)


_REPEATED: dict[Replicate, str] = {
    "boot": "the guest was shut down, the VM reconfigured, read back and powered on again on the same host "
    "(a boot); its topology was verified before measuring.",
    "pass": f"a pass was made. {PASSES}",
}


def _maxdop(study: Study) -> str:
    """The statements' MAXDOP, of a workload that has statements."""
    if "database" not in study.workload.needs:
        return ""
    hints = [f"MAXDOP {value}" if value else "the server's own MAXDOP" for value in study.maxdops]
    return f", {hints[0]}" if len(hints) == 1 else f", {listed(hints, 'or')} by arm"


def _clocked(analysis: Analysis) -> str:
    """The source of the figure, and which direction is better."""
    measure = analysis.measure
    if measure.key == "elapsed_ms":
        return " under SET STATISTICS TIME."
    return f"; the figure is {measure.name} in {measure.unit}, {direction(measure)}."


def _controls_text(loaded: LoadedRun, analysis: Analysis) -> str:
    """What ran besides the arms: the positive control and the drift sentinel."""
    control, parts = loaded.study.control_arm, []
    if control:
        parts.append(
            f"In {control}, the positive control, the tables were made under the process affinity of one "
            "vNUMA node and read under that of another, proven by the memory clerk's pages by node."
        )
    if analysis.sentinel != NOT_RUN:
        parts.append("Each boot also ran a short sentinel query, which only raises alarms.")
    return " ".join(parts)


def _leaving(design: Design) -> str:
    """How arms leave, and what this means for their figures."""
    hours = f", and to end before {design.max_hours:g} hours of work" if design.max_hours else ""
    return (
        " Declared beforehand: an arm left after the block that decided its verdict, with looks from block 4 "
        f"(equivalent from block 6) of at most {design.max_blocks}{hours}. The intervals are repeated ones "
        "(group-sequential, power family of alpha spending with exponent 1.5), which hold at all looks "
        "together. The estimate of an arm that left early is a little too large: 1.07% where the truth is 1%."
    )


def _stopping(design: Design, analysis: Analysis) -> str:
    """The stopping rule, unless the number of blocks was fixed."""
    ended = f" It ended by this rule: {analysis.ended_by}." if analysis.ended_by else ""
    if design.stop == "decided":
        return _leaving(design) + ended
    rules = []
    if design.precision:
        rules.append(f"when every 95% half-width is at most {percent_text(design.precision)}")
    if design.max_hours:
        rules.append(f"before {design.max_hours:g} hours of work")
    if not rules:
        return ""
    return (
        f" Declared beforehand, between blocks and whatever the intervals say: to end "
        f"{listed(rules, 'or')}, with at most {counted(design.most_blocks, 'block')}.{ended}"
    )


def _error(analysis: Analysis, design: AnalysisDesign) -> str:
    noise = analysis.noise
    if noise.cell_sd is None:
        return "There were too few cells to estimate an error."
    placed = _PLACED[design.place]
    own = [arm.arm for arm in analysis.arms if arm.contrast.rests_on_pairs]
    if own and not analysis.gate:
        return (
            f"Differences are ratios within blocks; {listed(own)} was compared by a paired t on its own "
            f"differences (residual SD of a cell {noise.cell_sd * 100:.2f}%).{placed}"
        )
    arms = counted(len(analysis.arms), "comparison")
    repeated = design.stop == "decided"
    together = "repeated intervals" if repeated else "Bonferroni"
    if len(own) == len(analysis.arms) > 0:
        return (
            f"Differences are ratios within blocks; the variance gate forbids pooling, so that each arm was "
            f"compared by a paired t on its own differences, with {together} for {arms} (residual SD of a "
            f"cell {noise.cell_sd * 100:.2f}%).{placed}"
        )
    text = (
        f"Differences are ratios from an arm + block fit (residual SD of a cell {noise.cell_sd * 100:.2f}%, "
        f"{analysis.df} degrees of freedom) with {'repeated' if repeated else 'Dunnett'} intervals for {arms}"
    )
    if not own:
        return f"{text}; every column passed the variance gate.{placed}"
    gated = f"{listed(own)}, where the variance gate forbids pooling, by a paired t with {together}"
    return f"{text}; {gated}.{placed}"


def _equivalence(analysis: Analysis) -> str:
    if not analysis.arms:
        return ""
    verdict = analysis.arms[0].verdict
    return (
        f"Equivalent means that the {verdict.equivalence_level * 100:.4g}% simultaneous interval lies within "
        f"{verdict.margin * 100:g}% on either side. It needs {MIN_BOOTS_FOR_VERDICT} "
        f"{plural(verdict.replicate)}; slower and faster need {verdict.boots_needed}."
    )


def _power(analysis: Analysis) -> str:
    if isinstance(analysis.detectable_effect, NotEvaluated):
        return ""
    blocks = counted(analysis.blocks, "block")
    effect = percent_up(analysis.detectable_effect)
    return f"With the upper bound of this spread, {blocks} likely (80%) detect a difference of {effect}."


def _range(boots: set[int], study: Study) -> str:
    low, high = min(boots), max(boots)
    replicate = study.replicate
    if replicate == "boot":
        return counted(low, "power-cycle") if low == high else f"{low} to {high} power-cycles"
    return counted(low, replicate) if low == high else f"{low} to {high} {plural(replicate)}"


def cheapest(loaded: LoadedRun, analysis: Analysis) -> Plans | None:
    """By the spread's upper bound, and by this run's cell times; None if either is unknown."""
    vm, design = loaded.vm(analysis.vm), loaded.study.design
    valid = loaded.attempts_of(vm, Outcome.VALID) if vm else ()
    took = [(one.ended_at - one.started_at).total_seconds() for one in valid if one.ended_at]
    spread = upper_spread(analysis.noise, design.iterations, len(loaded.study.workload.sizes))
    once = loaded.iteration_seconds.get(analysis.vm)
    if not took or spread is None or once is None:
        return None
    costs = Costs.measured(statistics.median(took), once, design.warmups, design.iterations)
    return allocate(loaded.result.design, wanted_width(loaded.result.design, design.precision), spread, costs)


def boots_or_iterations(loaded: LoadedRun, analysis: Analysis) -> str:
    """The components of the spread, and the consequence for the next run."""
    split, plans = split_sentence(analysis.noise, analysis.replicate), cheapest(loaded, analysis)
    if plans is None:
        return split
    return f"{split} {plans_sentence(plans, analysis.replicate, loaded.study.design.iterations)}"
