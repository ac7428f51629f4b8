"""Write the report's page: one file that works offline, without scripts and in any browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from markupsafe import escape

from vnuma.analysis.checks import ALARM
from vnuma.analysis.result import Analysis
from vnuma.report.charts.pictures import Block, one_page, plain, size_of
from vnuma.report.charts.row_plots import all_sizes, differences_figure
from vnuma.report.charts.topology_drawing import drawing
from vnuma.report.model.arm_topologies import topologies_of
from vnuma.report.model.grid import GridTable, as_markdown
from vnuma.report.model.methods import scope
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.trust import limit_statements
from vnuma.report.model.words import answer_words, progress_words
from vnuma.report.page.page import Part, filled, verdict_rows, vm_parts, write_file
from vnuma.report.published.published_comparison import comparison_caution
from vnuma.store.rows import Vm
from vnuma.words.provenance import banner
from vnuma.words.validation import percent_text

ReportFormat = Literal["html", "markdown", "png", "pdf"]
ENDINGS: dict[ReportFormat, str] = {"html": "html", "markdown": "md", "png": "png", "pdf": "pdf"}


def write_report(loaded: LoadedRun, output: Path | None, format_: ReportFormat) -> list[Path]:
    """Write the report in one of ENDINGS' formats, by default to reports/RUN.html or RUN.simulated.html.

    RUN.emulated.html for an emulated machine. PNG and PDF are one page of A4 for each VM. Raises InputError
    when a file cannot be written, or the run has no name for a file.
    """
    path = output or Path("reports") / f"{loaded.file_stem}.{ENDINGS[format_]}"
    if format_ in ("png", "pdf"):
        return _write_sheets(loaded, path, format_)
    write_file(path, page_text(loaded) if format_ == "html" else _markdown(loaded), "The report")
    return [path]


def page_text(loaded: LoadedRun) -> str:
    """The page as text."""
    parts = vm_parts(loaded)
    return filled(
        "report.html.j2",
        "style.css",
        "page.js",
        loaded=loaded,
        run=loaded.run,
        study=loaded.study,
        comparison_caution=comparison_caution(loaded.result.design.replicate),
        asks_for_topology=loaded.study.compares_shapes,
        banner=banner(loaded.simulated),
        progress=progress_words(loaded),
        parts=parts,
        contents=contents(parts),
        matrix=matrix(parts),
    )


def contents(parts: Sequence[Part]) -> list[tuple[str, str]]:
    """Links to the VM's sections; with several VMs, the table at the top has them."""
    if len(parts) > 1:
        return [("study", "Study file"), ("again", "Run it again")]
    key = parts[0]["key"]
    measured = any(form["primary"] for form in parts[0]["forms"])
    names = [("how-far", "How far this goes")]
    names += [("table", "Table 1"), ("by-size", "By size"), ("iterations", "Every iteration")] * measured
    names += [("order", "Order and drift")]
    names += [("topology", "Topology")] if parts[0]["topologies"] else []
    names += [("waits", "Waits")] if parts[0]["waits"] else []
    names += [("scaling", "Scaling")] if parts[0]["scaling"] else []
    names += [("figures", "Also measured")] if parts[0]["figures"] else []
    names += [("verified", "What the workload verified")] if parts[0]["verified"] else []
    names += [("warnings", "Warnings"), ("not-counted", "Not counted")]
    names += [("published", "Published figures for comparison")] if parts[0]["published"] else []
    names += [("methods", "Methods"), ("configuration", "Hardware and software"), ("study", "Study file")]
    names += [("again", "Run it again")]
    return [(f"{key}-{name}" if name not in ("study", "again") else name, text) for name, text in names]


def matrix(parts: Sequence[Part]) -> Part:
    """All VMs of a run with their verdicts, and for each arm how many have which: `3 slower`."""
    arms = list(dict.fromkeys(row.arm for part in parts for row in part["verdicts"][1:]))
    by_arm = [{row.arm: row for row in part["verdicts"]} for part in parts]
    shorts = (Counter(cells[arm].short for cells in by_arm) for arm in arms)
    return {
        "arms": arms,
        "rows": [(part, [cells[arm] for arm in arms]) for part, cells in zip(parts, by_arm, strict=True)],
        "counts": [[f"{n} {short}" for short, n in found.most_common()] for found in shorts],
    }


def _markdown(loaded: LoadedRun) -> str:
    """The page as Markdown, by VM."""
    parts = [f"# {loaded.label}: {loaded.study.title or loaded.study.name}"]
    parts += [f"**{banner(loaded.simulated)}**"] if loaded.simulated else []
    for vm, analysis in loaded.primary:
        rows = verdict_rows(loaded.study.reference, analysis)
        table = GridTable(
            "Difference from the reference over all sizes, simultaneous 95% intervals",
            ("Arm", "Verdict", "Difference"),
            tuple((row.arm, row.words, row.difference) for row in rows),
        )
        limits = (
            f"- **{item.kind}**: {item.what} {item.text}" for item in limit_statements(loaded, vm, analysis)
        )
        parts += [f"## {vm.name}", answer_words(loaded, analysis), scope(loaded, vm, analysis)]
        parts += [as_markdown(table).strip(), "### How far this goes", "\n".join(limits)]
    return "\n\n".join(parts) + "\n"


def _write_sheets(loaded: LoadedRun, path: Path, format_: Literal["png", "pdf"]) -> list[Path]:
    """A page of A4 for each VM; with several VMs, file names include the VM.

    Raises EnvironmentProblem where it cannot be drawn, InputError where it cannot be written.
    """
    several, written = len(loaded.vms) > 1, []
    for vm, analysis in loaded.primary:
        file = path.with_name(f"{path.stem}-{plain(vm.name)}{path.suffix}") if several else path
        write_file(file, one_page(sheet_of(loaded, vm, analysis), vm.name, format_), "The report")
        written.append(file)
    return written


_MOST_DRAWN = 6


def sheet_of(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> Iterator[Block]:
    """Question, answer, verdicts, topologies, and how far this goes."""
    study, run = loaded.study, loaded.run
    simulated = [("simulated", banner(loaded.simulated))] if loaded.simulated else []
    yield "note", f"Study {study.name}, run {run.number}, {run.created_at:%Y-%m-%d}, state {run.state}"
    asked = f"Which virtual topology for the {study.vcpus}-vCPU VM {vm.name} on {vm.esxi_host}?"
    yield "title", asked if study.compares_shapes else f"{study.title or study.name}: {vm.name}"
    yield from simulated
    yield "head", answer_words(loaded, analysis)
    yield "note", scope(loaded, vm, analysis)
    if analysis.points:
        yield [differences_figure(all_sizes(analysis), analysis, key="forest", width=360).svg]
        band = percent_text(analysis.margin)
        yield (
            "note",
            f"Lines: 95% intervals for all arms together. Shaded: within {band}, too small to matter.",
        )
    arms = topologies_of(loaded, vm)
    if arms:
        yield "head", "Topologies as asked for, predicted and seen"
        yield [_titled(drawing(arm, key=f"arm-{n}").svg, arm.arm) for n, arm in enumerate(arms[:_MOST_DRAWN])]
    if len(arms) > _MOST_DRAWN:
        yield "note", f"{len(arms) - _MOST_DRAWN} more arms: see the HTML report."
    if arms:
        yield "note", "A box is a node, as wide as its vCPUs. Dashed: predicted; dotted: parts on the host."
    yield "head", "How far this goes"
    yield "note", f"A check raises an alarm where p is below {ALARM}."
    for item in limit_statements(loaded, vm, analysis):
        yield "text", f"{item.kind}: {item.what} {item.text}"
    yield "note", f"vnuma {run.product_version}, run {loaded.label}"
    yield from simulated


def _titled(svg: str, title: str) -> str:
    """A drawing below its name."""
    wide, tall = size_of(svg)
    below = str(svg).replace("<svg", '<svg y="20"', 1)
    return (
        f'<svg width="{wide:g}" height="{tall + 20:g}"><text class="head" y="13">{escape(title)}</text>'
        f"{below}</svg>"
    )
