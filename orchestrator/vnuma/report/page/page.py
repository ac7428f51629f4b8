"""The page's content, prepared so that templates only lay it out."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Label, Verdict
from vnuma.analysis.wording import growth_sentence, signed
from vnuma.assets import asset
from vnuma.domain.workloads.metric import medians, sized
from vnuma.errors import writing
from vnuma.report.charts.boot_charts import order, strips
from vnuma.report.charts.row_plots import all_sizes, each_size, scaling_charts
from vnuma.report.charts.svg import Figure
from vnuma.report.charts.topology_drawing import drawing, host_figures, host_map
from vnuma.report.model.arm_topologies import topologies_of, verified
from vnuma.report.model.configuration import configuration, settings_rows
from vnuma.report.model.methods import boots_or_iterations, methods, scope
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.scaling import curves, scaling_note
from vnuma.report.model.trust import attempt_words, limit_statements, repeated, warnings_of
from vnuma.report.model.words import (
    answer,
    boots_words,
    differences_words,
    direction,
    faster_side,
    lead,
    named,
    verdict_kind,
    verdict_words,
)
from vnuma.report.published.published_comparison import published_exact, published_rows
from vnuma.report.tables.paper_table import size_rows
from vnuma.report.tables.secondary import named_figures, sensitivity_table, waits_tables
from vnuma.store.rows import Vm
from vnuma.words.plain_text import listed, plural
from vnuma.words.validation import percent_text


def filled(template: str, style: str, script: str, **values: object) -> str:
    """A page from templates/, with a style sheet and a script from the same folder."""
    css, code = text_of(style), text_of(script)
    return (
        environment()
        .get_template(template)
        .render(
            **values,
            style=Markup(css),
            script=Markup(code),
            style_hash=hash_of(css),
            script_hash=hash_of(code),
        )
    )


def write_file(path: Path, content: str | bytes, what: str, fix: str = "Name another file: -o FILE") -> None:
    """Write a page or picture, called `what` in messages, and make its folders. Raises InputError."""
    with writing(path, what, fix=fix):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@cache
def environment() -> Environment:
    """The templates, with autoescaping; undefined names raise."""
    return Environment(
        loader=FileSystemLoader(asset("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy of such a page, for a server that sends it."""
    return (
        f"default-src 'none'; style-src '{hash_of(text_of(style))}'; "
        f"script-src '{hash_of(text_of(script))}'; base-uri 'none'; form-action 'none'"
    )


def text_of(name: str) -> str:
    """A style sheet or script of templates/."""
    return (asset("templates") / name).read_text(encoding="utf-8")


def hash_of(text: str) -> str:
    """The hash by which a Content-Security-Policy permits an inline text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


MOST_VMS_WITH_CHARTS = 8
"""Above this number, charts by size are left out to limit the page's size."""
MOST_VMS_WITH_SECONDARY = 2
STRIP_WIDTH = 370
"""Pixels: with its axis, half of the text's width."""

SYMBOLS = {Label.EQUIVALENT: "≈", Label.UNDECIDED: "?", Label.TOO_FEW: "…"}
UP, DOWN = "▲", "▼"
"""Symbols for slower and faster: where the figure went."""


@dataclass(frozen=True)
class VerdictRow:
    """One arm in the first table. `short` is the bare verdict, for a table of many VMs."""

    arm: str
    kind: str
    symbol: str
    short: str
    words: str
    difference: str


Part = dict[str, Any]
"""The content of a part of the page by its name in the templates."""


def answer_parts(loaded: LoadedRun) -> list[Part]:
    """The first part about each VM, in order: answer, verdicts and limits. `key` makes ids unique."""
    parts = []
    for number, (vm, analysis) in enumerate(loaded.primary, start=1):
        plots = all_sizes(analysis) if analysis.points else None  # none before the first valid cell
        part = {
            "key": f"vm{number}",
            "vm": vm,
            "analysis": analysis,
            "answer": answer(loaded, analysis),
            "scope": scope(loaded, vm, analysis),
            "faster_side": faster_side(analysis.measure),
            "boots": boots_words(analysis, loaded.study.reference),
            "verdicts": verdict_rows(loaded.study.reference, analysis),
            "footnotes": _footnotes(analysis),
            "more": _more(analysis, loaded.result.design.size_word),
            "plots": plots,
            "limit_statements": limit_statements(loaded, vm, analysis),
        }
        parts.append(part)
    return parts


def vm_parts(loaded: LoadedRun) -> list[Part]:
    """The complete part about each VM, in the study's order."""
    return [part | _rest(loaded, **part) for part in answer_parts(loaded)]


def _rest(loaded: LoadedRun, key: str, vm: Vm, analysis: Analysis, **_first: object) -> Part:
    """What follows the first part. Charts are pairs, for wide and for narrow screens."""
    wide, narrow = (order(analysis, key=f"{key}-order-{w}", width=w) for w in (850, 270))
    host = host_map(loaded, vm)
    scaling = (
        scaling_charts(loaded, vm.name, key=f"{key}-scaling-{name}", width=width)
        for name, width in (("wide", 840), ("narrow", 230))
    )
    return {
        "direction": direction(analysis.measure),
        "replicates": plural(analysis.replicate),
        "forms": [_form(loaded, one, key) for one in _by_form(loaded, analysis)],
        "order": (wide, narrow) if wide and narrow else None,
        "host": host_figures(host, key=f"{key}-host") if host else (),
        "topologies": [
            (arm, drawing(arm, key=f"{key}-topology-{index}"))
            for index, arm in enumerate(topologies_of(loaded, vm))
        ],
        "needs": loaded.study.workload.needs,
        "waits": waits_tables(loaded, vm.name),
        "scaling": curves(loaded, vm.name),
        "scaling_note": scaling_note(loaded, vm.name),
        "scaling_charts": list(zip(*scaling, strict=True)),
        "figures": [table for _, table in named_figures(loaded, vm.name)],
        "verified": verified(loaded, vm),
        "warnings": [
            (lead(item.what), severity, item) for severity, item in warnings_of(loaded, vm, analysis)
        ],
        "not_counted": [(attempt_words(one), repeated(loaded, one)) for one in loaded.not_counted(vm)],
        "missing": [
            f"{item.label} in block {item.block}: {item.outcome}"
            + (f", {item.reason}" if item.reason != item.outcome else "")
            for item in analysis.missing
        ],
        "published": [row for one in _by_form(loaded, analysis) for row in published_rows(one, loaded.study)],
        "methods": methods(loaded, vm, analysis),
        "split": boots_or_iterations(loaded, analysis),
        "numbers": analysis.arms,
        "sensitivity": sensitivity_table(analysis),
        "configuration": configuration(loaded, vm),
        "settings": settings_rows(loaded, vm),
    }


def verdict_rows(reference: str, analysis: Analysis) -> list[VerdictRow]:
    """The reference and each arm, in the order of their drawings."""
    rows = [VerdictRow(reference, "reference", "", "reference", "reference", "0")]
    verdicts = [arm.verdict for arm in analysis.arms]
    for arm, verdict, difference in zip(analysis.arms, verdicts, differences_words(verdicts), strict=True):
        kind = verdict_kind(verdict)
        symbol = "" if verdict.withheld else verdict_symbol(verdict)
        short, words = kind.replace("-", " "), verdict_words(verdict)
        rows.append(VerdictRow(arm.arm, kind, symbol, short, words, difference))
    return rows


def verdict_symbol(verdict: Verdict) -> str:
    """A shape for its verdict."""
    if verdict.label in SYMBOLS:
        return SYMBOLS[verdict.label]
    return UP if (verdict.label is Label.SLOWER) == (verdict.better == "lower") else DOWN


def _footnotes(analysis: Analysis) -> list[str]:
    """Which intervals do not use the pooled error."""
    own = [arm.arm for arm in analysis.arms if arm.contrast.rests_on_pairs]
    if not own:
        return []
    if not analysis.gate:
        return [f"{listed(own)}: the interval rests on its own paired error, as with any single arm."]
    whose = "the interval rests on its" if len(own) == 1 else "each interval rests on its arm's"
    return [f"{listed(own)}: {whose} own paired error, not on the pooled one (variance gate)."]


def _more(analysis: Analysis, size_word: str) -> list[str]:
    """For each arm: whether the gap changes with size, and where it is largest."""
    said: dict[str, list[str]] = {arm.arm: [] for arm in analysis.arms}
    if isinstance(analysis.growth, tuple):
        for item in analysis.growth:
            said[item.arm].append(growth_sentence(item))
    for arm in said if len(analysis.sizes) > 1 else ():
        if gap := analysis.largest_gap(arm):
            said[arm].append(f"largest at {sized(gap[0], size_word)}: {signed(gap[1])}")
    return [f"{arm}: {'; '.join(parts)}." for arm, parts in said.items() if parts]


def _form(loaded: LoadedRun, analysis: Analysis, key: str) -> Part:
    """The figures of one form. `published`: other people's are drawn next to ours."""
    form, measure, size_word = analysis.form, analysis.measure, loaded.result.design.size_word
    drawn = len(loaded.vms) <= (MOST_VMS_WITH_CHARTS if analysis.primary else MOST_VMS_WITH_SECONDARY)
    published = published_exact(analysis, loaded.study)
    return {
        "form": form,
        "title": f"{named(measure)}, {medians(analysis.replicate)}, {measure.unit}",
        "measure": named(measure),
        "direction": direction(measure),
        "faster_side": faster_side(measure),
        "boots": boots_words(analysis, loaded.study.reference),
        "published": any(size in published for size in loaded.study.workload.sizes),
        "primary": analysis.primary,
        "table": size_rows(analysis),
        "arms": [(cell.arm, cell.boots) for cell in analysis.table[0].cells],
        "level": percent_text(analysis.sizes[0].arms[0].verdict.level) if analysis.arms else "",
        "by_size": each_size(analysis, published, size_word) if drawn else (),
        "strips": _strips(analysis, size_word, f"{key}-{form}-strip") if drawn else (),
    }


def _strips(analysis: Analysis, size_word: str, key: str) -> tuple[tuple[Figure, Figure], ...]:
    """Each size twice, since the text of a drawn chart must not scale."""
    wide, narrow = (
        strips(analysis, size_word, key=f"{key}-{width}", width=width) for width in (STRIP_WIDTH, 285)
    )
    return tuple(zip(wide, narrow, strict=True))


def _by_form(loaded: LoadedRun, primary: Analysis) -> list[Analysis]:
    """Each form of a VM in its declared measure, if there is anything to show."""
    found = (
        loaded.result.analysis(primary.vm, form, loaded.result.design.measure(form).key)
        for form in loaded.study.workload.forms
    )
    return [analysis for analysis in found if analysis is not None and analysis.points]
