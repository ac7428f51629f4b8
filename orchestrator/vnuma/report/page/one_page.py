"""A run on one page, for pasting or presenting: the answer, its limits, the verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from vnuma.analysis.result import Analysis
from vnuma.domain.vm.provenance import banner
from vnuma.errors import EnvironmentProblem
from vnuma.isolation import IsolationError
from vnuma.report.charts import difference_charts
from vnuma.report.charts.pictures import Picture, plain, standalone
from vnuma.report.model.grid import GridTable, as_markdown
from vnuma.report.model.limits import limit_statements
from vnuma.report.model.methods import scope
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import answer
from vnuma.report.page.page import verdict_rows
from vnuma.store.rows import Vm


def markdown(loaded: LoadedRun) -> str:
    """The page as Markdown, by VM."""
    parts = [f"# {loaded.run.name}: {loaded.study.title or loaded.study.name}"]
    parts += [f"**{banner(loaded.simulated)}**"] if loaded.simulated else []
    for vm, analysis in _vms(loaded):
        rows = verdict_rows(loaded.study.reference, analysis, None)
        table = GridTable(
            "Difference from the reference over all sizes, simultaneous 95% intervals",
            ("Arm", "Verdict", "Difference"),
            tuple((row.arm, row.words, row.difference) for row in rows),
        )
        limits = (
            f"- **{item.kind}**: {item.what} {item.text}" for item in limit_statements(loaded, vm, analysis)
        )
        parts += [f"## {vm.name}", _sentence(loaded, analysis), scope(loaded, vm, analysis)]
        parts += [as_markdown(table).strip(), "### How far this goes", "\n".join(limits)]
    return "\n\n".join(parts) + "\n"


def write_pictures(loaded: LoadedRun, path: Path, kind: Literal["png", "pdf"]) -> list[Path]:
    """Each VM's differences with its sentence and scope; with several VMs, file names include the VM.

    Raises EnvironmentProblem where the picture cannot be drawn, OSError where it cannot be written.
    """
    written = []
    for vm, analysis in _vms(loaded):
        several = len(loaded.vms) > 1
        file = path.with_name(f"{path.stem}-{plain(vm.name)}{path.suffix}") if several else path
        figure = difference_charts.forest(analysis, key="forest", width=640)
        words = f"{_sentence(loaded, analysis)} {scope(loaded, vm, analysis)}"
        picture = Picture(plain(vm.name), standalone(figure, words, loaded, "light"))
        try:
            drawn = picture.png if kind == "png" else picture.pdf
        except IsolationError as error:
            raise EnvironmentProblem(
                f"The picture of {vm.name} could not be drawn: {error}.",
                fix="Take another format: --format html",
            ) from error
        file.write_bytes(drawn)
        written.append(file)
    return written


def _vms(loaded: LoadedRun) -> Iterator[tuple[Vm, Analysis]]:
    for analysis in loaded.result.primary:
        if vm := loaded.vm(analysis.vm):
            yield vm, analysis


def _sentence(loaded: LoadedRun, analysis: Analysis) -> str:
    return "".join(text for text, _ in answer(loaded, analysis))
