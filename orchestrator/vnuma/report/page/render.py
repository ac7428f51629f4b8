"""Write the page: one file that needs no network, no scripts and no browser of a certain make."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from vnuma.domain.vm.provenance import banner
from vnuma.errors import InputError
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import progress_words
from vnuma.report.page.contents import contents
from vnuma.report.page.matrix import matrix
from vnuma.report.page.one_page import markdown, write_pictures
from vnuma.report.page.page import vm_parts
from vnuma.report.page.template import filled
from vnuma.report.published.published_comparison import no_test

Kind = Literal["html", "markdown", "png", "pdf"]
ENDINGS: dict[Kind, str] = {"html": "html", "markdown": "md", "png": "png", "pdf": "pdf"}


def write_report(loaded: LoadedRun, output: Path | None, kind: Kind) -> list[Path]:
    """Write the report as one of ENDINGS; by default to reports/RUN.html, or RUN.simulated.html.

    One of an emulated machine is RUN.emulated.html. Of several VMs there is a picture each.

    Raises InputError when a file cannot be written, or the run has no name for a file.
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
        no_test=no_test(loaded.result.design.replicate),
        asks_for_topology=loaded.study.compares_shapes,
        banner=banner(loaded.simulated),
        progress=progress_words(loaded),
        parts=parts,
        contents=contents(parts),
        matrix=matrix(parts),
    )
