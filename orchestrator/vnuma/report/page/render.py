"""Write the report's page: one file that works offline, without scripts and in any browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vnuma.domain.vm.provenance import banner
from vnuma.errors import InputError
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import progress_words
from vnuma.report.page.one_page import markdown, write_pictures
from vnuma.report.page.page import VerdictRow, VmPart, vm_parts
from vnuma.report.page.template import filled
from vnuma.report.published.published_comparison import comparison_caution

Kind = Literal["html", "markdown", "png", "pdf"]
ENDINGS: dict[Kind, str] = {"html": "html", "markdown": "md", "png": "png", "pdf": "pdf"}


def write_report(loaded: LoadedRun, output: Path | None, kind: Kind) -> list[Path]:
    """Write the report in one of ENDINGS' formats, by default to reports/RUN.html or RUN.simulated.html.

    RUN.emulated.html for an emulated machine. With several VMs there is a picture each. Raises InputError
    when a file cannot be written, or the run has no name for a file.
    """
    path = output or Path("reports") / f"{loaded.file_stem}.{ENDINGS[kind]}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind in ("png", "pdf"):
            return write_pictures(loaded, path, kind)
        path.write_text(page_text(loaded) if kind == "html" else markdown(loaded), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"The report cannot be written to {path} ({error.strerror}).", fix="Name another file: -o FILE"
        ) from error
    return [path]


def write_page(loaded: LoadedRun, output: Path | None) -> Path:
    """The whole report as one HTML page; see `write_report`."""
    return write_report(loaded, output, "html")[0]


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


def contents(parts: Sequence[VmPart]) -> list[tuple[str, str]]:
    """Links to the VM's sections; with several VMs, the table at the top has them."""
    if len(parts) > 1:
        return [("study", "Study file"), ("again", "Run it again")]
    key = parts[0].key
    names = [("how-far", "How far this goes"), ("table", "Table 1"), ("by-size", "By size")]
    names += [("iterations", "Every iteration"), ("order", "Order and drift")]
    names += [("topology", "Topology")] if parts[0].topologies else []
    names += [("waits", "Waits")] if parts[0].waits else []
    names += [("scaling", "Scaling")] if parts[0].scaling else []
    names += [("figures", "Also measured")] if parts[0].figures else []
    names += [("verified", "What the workload verified")] if parts[0].verified else []
    names += [("warnings", "Warnings"), ("lost", "Not counted")]
    names += [("published", "Published figures for comparison")] if parts[0].published else []
    names += [("methods", "Methods"), ("configuration", "Hardware and software"), ("study", "Study file")]
    names += [("again", "Run it again")]
    return [(f"{key}-{name}" if name not in ("study", "again") else name, text) for name, text in names]


@dataclass(frozen=True)
class MatrixRow:
    """One VM; `cells` follow the order of the arms."""

    key: str
    vm: str
    host: str
    cells: tuple[VerdictRow, ...]


@dataclass(frozen=True)
class Matrix:
    """`counts`: for each arm, the number of VMs by verdict: `3 slower`."""

    arms: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    counts: tuple[tuple[str, ...], ...]


def matrix(parts: Sequence[VmPart]) -> Matrix:
    """All VMs of a run, in the study's order."""
    arms = tuple(dict.fromkeys(row.arm for part in parts for row in part.verdicts[1:]))
    rows = tuple(
        MatrixRow(part.key, part.vm.name, part.vm.esxi_host, tuple(_cell(part, arm) for arm in arms))
        for part in parts
    )
    return Matrix(
        arms, rows, tuple(_counts([row.cells[column] for row in rows]) for column in range(len(arms)))
    )


def _cell(part: VmPart, arm: str) -> VerdictRow:
    return next(row for row in part.verdicts if row.arm == arm)


def _counts(cells: Sequence[VerdictRow]) -> tuple[str, ...]:
    return tuple(f"{number} {short}" for short, number in Counter(cell.short for cell in cells).most_common())
