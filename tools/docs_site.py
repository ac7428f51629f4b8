"""What the site of docs/ has besides the files there: a hook of MkDocs, named in mkdocs.yml.

The repository's own pages (README.md is the front page), pages made from the code, and the files of the
repository that a page links to. Links are rewritten, so that one text works on both sites.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

import vnuma
from tools import what_if
from tools.manual import markdown as command_line
from vnuma.frames import RunTables

ROOT = Path(__file__).resolve().parents[1]
OWN = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
OWN |= {
    "SECURITY.md": "security.md",
    "docs/notebook.ipynb": "notebook.md",
    "docs/decisions": "decisions/index.md",
    "templates/what_if/index.html": "what-if/index.html",
}
"""Paths in the repository, and the page that each is here."""

LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
WALK = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and files that are not in docs/."""
    made: dict[str, str | bytes] = {
        **{page: (ROOT / path).read_text("utf-8") for path, page in OWN.items() if path.endswith(".md")},
        "notebook.md": notebook(json.loads((ROOT / "docs/notebook.ipynb").read_text("utf-8"))),
        "decisions/index.md": decisions(),
        "command-line.md": command_line(),
        "python.md": python_page(),
    }
    made |= {f"what-if/{name}": content for name, content in what_if.page().items()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    for path in sorted(linked_files()):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Links as they are on the site, and each walk through the code as a list."""
    source = source_of(page.file.src_uri)
    return WALK.sub(lambda found: walk(found[1]), rewritten(text, source, page.file.src_uri))


def source_of(page: str) -> str:
    """The file of the repository that a page is made from; links are relative to it."""
    known = {of: path for path, of in OWN.items()}
    if page in known:
        return f"{known[page]}/index.md" if page == "decisions/index.md" else known[page]
    return f"docs/{page}" if (ROOT / "docs" / page).exists() or not (ROOT / page).exists() else page


def rewritten(text: str, source: str, page: str) -> str:
    """The text with its links to files of the repository as links between pages of the site."""

    def here(found: re.Match[str]) -> str:
        path = os.path.normpath(PurePosixPath(source).parent / found[1])
        target = OWN.get(path) or path.removeprefix("docs/")
        return os.path.relpath(target, PurePosixPath(page).parent)

    return LINK.sub(here, text)


def linked_files() -> set[str]:
    """Files outside docs/ that its pages link to, and pages that those link to."""
    found: set[str] = set()
    waiting = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    waiting += [path for path in OWN if path.endswith(".md")]
    while waiting:
        source = waiting.pop()
        for link in LINK.findall((ROOT / source).read_text("utf-8")):
            path = os.path.normpath(PurePosixPath(source).parent / link)
            if not path.startswith("docs") and path not in OWN and path not in found:
                found.add(path)
                waiting += [path] if path.endswith(".md") else []
    return found


def walk(diagram: str) -> str:
    """A numbered flowchart as a list: the site loads no script that could draw it."""
    nodes = re.findall(r'\["(\d+) ([^"]+)"\]', diagram)
    steps = (
        (number, *label.partition("<br>")) for number, label in sorted(nodes, key=lambda one: int(one[0]))
    )
    return "\n".join(f"{number}. `{path}`{': ' if what else ''}{what}" for number, path, _, what in steps)


def decisions() -> str:
    """The index of the decisions, by their titles."""
    pages = sorted((ROOT / "docs/decisions").glob("0*.md"))
    titles = [page.read_text("utf-8").splitlines()[0].removeprefix("# ") for page in pages]
    rows = [f"- [{title}]({page.name})" for page, title in zip(pages, titles, strict=True)]
    return "\n".join(["# Decisions\n", "Larger decisions, with their reasons.\n", *rows, ""])


def notebook(page: dict[str, Any]) -> str:
    """A notebook as Markdown: its text, code and what the code showed."""
    parts = []
    for cell in page["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            shown = "".join(output.get("text") or output["data"]["text/plain"])
            parts.append(f"```text\n{shown.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def python_page() -> str:
    """The Python interface, from its docstrings."""
    parts = [
        "# Python",
        "A run's tables for notebooks and scripts: [a notebook](notebook.ipynb) shows how, "
        "[columns](reference/columns.md) explains each column. Names below stay; other modules may change.",
        *_described("vnuma.open", vnuma.open),
        "## What it returns",
        inspect.getdoc(RunTables) or "",
        *_members(),
    ]
    return "\n\n".join(parts) + "\n"


def _members() -> Iterator[str]:
    for name, member in vars(RunTables).items():
        if isinstance(member, property):
            yield from (f"### run.{name}", inspect.getdoc(member) or "")
        elif not name.startswith("_"):
            yield from _described(f"run.{name}", member, level=3)


def _described(name: str, function: Any, level: int = 2) -> tuple[str, ...]:
    signature = inspect.signature(function)
    shown = signature.replace(parameters=[one for one in signature.parameters.values() if one.name != "self"])
    return (
        f"{'#' * level} {name}",
        f"```python\n{name}{str(shown).replace(chr(39), '')}\n```",
        inspect.getdoc(function) or "",
    )
