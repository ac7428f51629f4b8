"""Write the page: one file that needs no network, no scripts and no browser of a certain make."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vnuma.assets import asset
from vnuma.errors import InputError
from vnuma.report.model import LoadedRun
from vnuma.report.page import contents, vm_parts
from vnuma.report.words import banner, progress_words


def write_page(loaded: LoadedRun, output: Path | None) -> Path:
    """Write the report; by default to reports/RUN.html, or reports/RUN.simulated.html for the lab's runs.

    Raises InputError when the file cannot be written.
    """
    ending = ".simulated.html" if loaded.simulated else ".html"
    path = output or Path("reports") / f"{loaded.run.name}{ending}"
    page = page_text(loaded)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"The report cannot be written to {path} ({error.strerror}).", fix="Name another file: -o FILE"
        ) from error
    return path


def page_text(loaded: LoadedRun) -> str:
    """The page as text."""
    folder = asset("templates")
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("style.css", "page.js"))
    parts = vm_parts(loaded)
    return environment.get_template("report.html.j2").render(
        loaded=loaded,
        run=loaded.run,
        study=loaded.study,
        banner=banner(loaded.simulated),
        progress=progress_words(loaded),
        parts=parts,
        contents=contents(parts),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _hash(text: str) -> str:
    """What a Content-Security-Policy names a permitted inline text by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
