"""The run as text for a terminal: at most 80 columns, no colour, the answer below the figures."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.analysis.cells import YET_TO_RUN
from vnuma.analysis.result import Analysis
from vnuma.analysis.wording import amount, limits, signed, signed_amount
from vnuma.domain.workloads.metric import medians, none_valid
from vnuma.report.model import grid, trust, words
from vnuma.report.model.guest import guest_notes
from vnuma.report.model.methods import boots_or_iterations
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.scaling import scaling_text
from vnuma.report.model.trust import limiting, saturation_text
from vnuma.report.published.published_comparison import comparison_caution, published_text
from vnuma.report.tables.paper_table import paper_rows, paper_table
from vnuma.report.tables.secondary import figures_text, sensitivity_text
from vnuma.store.rows import Vm
from vnuma.words.plain_text import counted, filled, plural
from vnuma.words.provenance import banner
from vnuma.words.validation import percent_text

WIDTH = 80
_ATTEMPTS_SHOWN = 5
_LABEL = 11
_NO_BREAK = "\N{NO-BREAK SPACE}"


def as_text(loaded: LoadedRun, width: int = WIDTH) -> str:
    """Table 1, verdicts and their basis. Below `width` columns tables become lines."""
    parts = [_heading(loaded, width)]
    for vm in loaded.study.vms:
        parts += [part for part in _vm_parts(loaded, vm, width) if part]
    parts.append("\n".join(_wrap(text, "  ", width) for text in _notes(loaded)))
    return "\n\n".join(parts) + "\n"


def as_markdown(loaded: LoadedRun) -> str:
    """The primary results for pasting: each VM's answer, Table 1 and the verdicts."""
    parts = [
        f"# {loaded.label}: {loaded.study.title or loaded.study.name}",
        f"**{banner(loaded.simulated)}**" if loaded.simulated else "",
    ]
    for analysis in loaded.result.primary:
        verdicts = "\n".join(f"- **{one.arm}**: {words.verdict_words(one.verdict)}" for one in analysis.arms)
        sentence = words.answer_words(loaded, analysis)
        parts += [
            f"## {analysis.vm}",
            sentence,
            grid.as_markdown(paper_table(loaded, analysis)).strip(),
            verdicts,
        ]
    return "\n\n".join(filter(None, parts)) + "\n"


def brief_as_text(loaded: LoadedRun, width: int = WIDTH) -> str:
    """The primary results and how far to trust them; the answer is last, nearest to the prompt."""
    parts = [_heading(loaded, width)]
    for vm in loaded.study.vms:
        own = [(row, analysis) for row, analysis in loaded.primary if row.name == vm]
        size_word = loaded.result.design.size_word
        parts += [vm] if len(loaded.study.vms) > 1 else []
        for _, analysis in own:
            parts += [_figures(analysis, size_word, width, secondary=False), _verdicts(analysis, width)]
        parts += [*scaling_text(loaded, vm, width), *saturation_text(loaded, vm, width)]
        parts += [_trust(loaded, row, analysis, width) for row, analysis in own]
    return "\n\n".join([*filter(None, parts), answer_text(loaded, width)]) + "\n"


def answer_text(loaded: LoadedRun, width: int = WIDTH) -> str:
    """The report's first sentence and its limits; with several VMs, one for each."""
    lines = list(_answers(loaded, width))
    for vm, found in loaded.primary:
        said = [item.short for item in limiting(loaded, vm, found)]
        if said:
            more = f"Details: vnuma results {loaded.argument} --all"
            lines.append(_wrap(f"Limits  {_of(loaded, found)}{'. '.join(said)}. {more}", " " * 8, width))
    return "\n".join(lines)


def _answers(loaded: LoadedRun, width: int) -> Iterator[str]:
    for said in answer_sentences(loaded):
        yield _wrap(f"Answer  {said}", " " * 8, width)


def answer_sentences(loaded: LoadedRun) -> Iterator[str]:
    """The report's first sentence; with several VMs, one for each."""
    for found in loaded.result.primary:
        yield _of(loaded, found) + words.answer_words(loaded, found)


def _of(loaded: LoadedRun, found: Analysis) -> str:
    """The VM's name before its text, if there are several."""
    return f"{found.vm}: " if len(loaded.study.vms) > 1 else ""


def all_as_text(loaded: LoadedRun, width: int = WIDTH) -> str:
    """Table 1 and verdicts, then secondary results, limits, and the answer."""
    several = len(loaded.study.vms) > 1
    parts = [
        sensitivity_text(found, boots_or_iterations(loaded, found), f" on {found.vm}" * several, width)
        for found in loaded.result.primary
    ]
    plan = _wrap(f"Plan  {trust.plan_check(loaded).words}", "  ", width)
    limiting_ = [
        _wrap(f"{_of(loaded, found)}{item.what} {item.text}", "  ", width)
        for vm, found in loaded.primary
        for item in limiting(loaded, vm, found)
    ]
    limits_ = "\n".join(["What limits the verdicts", *limiting_])
    limits_ += "" if "\n" in limits_ else ": nothing known"
    end = "\n\n".join([plan, limits_, *_answers(loaded, width)])
    return "\n".join([as_text(loaded, width), *filter(None, parts), end]) + "\n"


def _notes(loaded: LoadedRun) -> Iterator[str]:
    """What the figures above mean, for readers without the documentation."""
    yield "Differences are within-block ratios: they need not equal the gap of medians."
    if any(published_text(loaded, analysis, WIDTH) for analysis in loaded.result.analyses):
        yield comparison_caution(loaded.result.design.replicate)
    several = [found for found in loaded.result.primary if len(found.sizes) > 1]
    verdicts = [arm.verdict for found in several for arm in found.sizes[0].arms if arm.verdict.interval]
    if verdicts:
        level = percent_text(verdicts[0].level)
        yield f"Intervals at one size are {level} each, so that all sizes hold together at 95%."


def _heading(loaded: LoadedRun, width: int) -> str:
    lines = [banner(loaded.simulated)] if loaded.simulated else []
    main = next(iter(loaded.result.primary), None)
    design = loaded.study.design
    order = words.ORDER_WORDS[design.order]
    boots = f", {words.boots_words(main, loaded.study.reference)}" if main and main.points else ""
    blocks = main.blocks if main else 0
    shown = (
        counted(blocks, "block")
        if blocks == design.most_blocks
        else f"{blocks} of {counted(design.most_blocks, 'block')}"
    )
    lines.append(_wrap(f"{loaded.label}  {shown} {order}{boots}", "  ", width))
    lines += [_wrap(text, "  ", width) for vm in loaded.vms for text in guest_notes(loaded, vm)]
    if main and words.blindness(main):
        lines.append(_wrap(words.blindness(main), "  ", width))
    if main and main.ended_by:
        lines.append(_wrap(f"Ended by its rule: {main.ended_by}.", "  ", width))
    if loaded.partial:
        lines.append(f"The run has not ended (vnuma status): {words.progress_words(loaded)}.")
    elif str(loaded.run.state) != "finished":
        lines.append(f"Run {loaded.run.state}: {words.progress_words(loaded)}.")
    return "\n".join(lines)


def _vm_parts(loaded: LoadedRun, vm: str, width: int) -> Iterator[str]:
    if len(loaded.study.vms) > 1:
        yield vm
    size_word = loaded.result.design.size_word
    for analysis in loaded.result.primary:
        if analysis.vm == vm:
            yield _figures(analysis, size_word, width, secondary=False)
            yield _verdicts(analysis, width)
            yield published_text(loaded, analysis, width)
    for form in loaded.study.workload.forms[1:]:
        other = loaded.result.analysis(vm, form, loaded.result.design.measure(form).key)
        if other and other.points:
            yield _figures(other, size_word, width, secondary=True)
            yield published_text(loaded, other, width)
    yield from scaling_text(loaded, vm, width)
    yield from saturation_text(loaded, vm, width)
    yield from figures_text(loaded, vm, width)
    for row, analysis in loaded.primary:
        if row.name == vm:
            yield _trust(loaded, row, analysis, width)


def _figures(analysis: Analysis, size_word: str, width: int, *, secondary: bool) -> str:
    """Medians with differences below; the secondary form has medians and percent only."""
    measure = analysis.measure
    what = f"{measure.unit}, {medians(analysis.replicate)}, {words.direction(measure)}"
    title = f"{words.named(measure)}, {what}"
    if secondary:
        title = f"Secondary (not used for the verdict): form {analysis.form}, {measure.name}, {what}"
    if not analysis.points:
        return f"{title}\n(no cell gave a valid measurement)"
    rows = list(paper_rows(analysis, size_word, secondary=secondary))
    widths = [
        max([10 if i == 0 else 12, *(len(cells[i]) + 2 for _, cells in rows)]) for i in range(len(rows[0][1]))
    ]
    label = max(_LABEL, *(len(name) for name, _ in rows))
    if label + sum(widths) > width:
        return "\n".join([_wrap(title, "  ", width), *_lines(analysis, size_word, width)])
    lines = [
        f"{name:<{label}}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True))
        for name, cells in rows
    ]
    return "\n".join([_wrap(title, "  ", width), *(line.rstrip() for line in lines)])


def _lines(analysis: Analysis, size_word: str, width: int) -> Iterator[str]:
    """The narrow form of the table: a line or two for each size and arm, nothing truncated."""
    unit = analysis.measure.unit
    for table, sizes in zip(analysis.table, analysis.sizes, strict=True):
        reference = table.cells[0].median or 0.0
        yield f"{size_word}: {table.size}"
        for cell, verdict in zip(table.cells, [None, *(arm.verdict for arm in sizes.arms)], strict=True):
            median = (
                none_valid(analysis.replicate)
                if cell.median is None
                else f"{amount(cell.median, unit)} {unit}"
            )
            text = f"  {cell.arm}: {median}"
            if verdict is None:
                text += ", ref"
            elif cell.difference is not None and cell.ratio is not None:
                difference = signed_amount(cell.difference, unit, reference)
                text += f", {difference} {unit}, {signed(cell.ratio)}"
            if verdict and verdict.interval:
                places_shown = words.places([verdict.interval], verdict.margin)[0]
                text += f" ({percent_text(verdict.level)}: {limits(verdict.interval, places_shown)})"
            yield _wrap(text, "    ", width)


_WIDEST_ARM = 18
"""A longer arm name shifts its sentence to the right."""


def _verdicts(analysis: Analysis, width: int) -> str:
    """One sentence per arm, on the mean over all sizes."""
    longest = min(max((len(arm.arm) for arm in analysis.arms), default=0), _WIDEST_ARM) + 2
    return "\n".join(
        _wrap(f"{arm.arm:<{longest - 2}}  {words.verdict_words(arm.verdict)}", " " * longest, width)
        for arm in analysis.arms
    )


def _trust(loaded: LoadedRun, vm: Vm, analysis: Analysis, width: int) -> str:
    indent = " " * 7
    statements = [
        trust.a_a_words(analysis, loaded.study.reference),
        f"{trust.effective_count(loaded, vm).words}; {trust.control_words(analysis)}",
    ]
    if found := trust.spreads(analysis):
        all_spreads = ", ".join(spread.words.replace(" ", _NO_BREAK) for spread in found)
        statements.append(
            f"{plural(analysis.replicate)} around their arm's median, min to max: {all_spreads}"
        )
    statements += [
        f"{item.what} {item.advice}" for item in analysis.cautions if item.id not in _SAID_ELSEWHERE
    ]
    lines = [_wrap(text, indent, width, first=indent) for text in statements]
    lines += _not_counted(loaded, vm, analysis, width)
    return "\n".join(["Trust  " + lines[0].lstrip(), *lines[1:]])


_SAID_ELSEWHERE = frozenset({"no_data", "aa_missing", "no_aa", "aa_note", "aa_alarm"})
"""Cautions whose content a verdict or the A/A sentence already has."""


def _not_counted(loaded: LoadedRun, vm: Vm, analysis: Analysis, width: int) -> list[str]:
    """Uncounted attempts and cells without a value, each with its reason."""
    lost = loaded.not_counted(vm)
    texts = [trust.lost_words(loaded, vm)] if lost else []
    texts += [f"  {trust.attempt_words(attempt)}" for attempt in lost[:_ATTEMPTS_SHOWN]]
    if len(lost) > _ATTEMPTS_SHOWN:
        texts.append(f"  and {len(lost) - _ATTEMPTS_SHOWN} more: vnuma report {loaded.argument}")
    missing = [item for item in analysis.missing if item.outcome != YET_TO_RUN]
    if missing:
        cells = ", ".join(f"{item.label} in block {item.block} ({item.reason})" for item in missing[:10])
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        texts.append(f"without a value: {cells}{more}")
    return [_wrap(text, " " * 9, width, first=" " * 7) for text in texts]


def _wrap(text: str, indent: str, width: int, *, first: str = "") -> str:
    """Wrap without splitting a number, an arm or a name; no-break spaces become plain ones at the end."""
    return filled(text, width - 1, first=first, then=indent).replace(_NO_BREAK, " ")
