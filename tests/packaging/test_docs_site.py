"""The site of docs/ as `make docs` builds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.installation import ROOT

LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?! rel=\"?(?:next|prev)))\b[^>]*?\b(?:src|href)=\"([^\"]+)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a broken link, or a page that no menu has, fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.long
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    """No scripts, styles, fonts or pictures: it is read where there is no internet."""
    pages = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    loaded = {address for text in pages.values() for address in LOADED.findall(text)}
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    from_styles = re.findall(r"url\(\s*['\"]?(?!data:)([^)'\"]+)|@import\s+['\"]([^'\"]+)", styles)

    assert len(pages) > 40
    assert len(loaded) > 3
    assert [address for address in loaded if "//" in address] == []
    assert [found for found in from_styles if "//" in "".join(found)] == []
    # The theme's script would fetch a program to draw these.
    assert [path.name for path, text in pages.items() if 'class="mermaid"' in text] == []


@pytest.mark.long
def test_reference_pages_are_made_from_the_code(site: Path) -> None:
    """The command line, Python, the notebook and the decisions have no file of their own in docs/."""
    made = {"command-line.html": "--fail-if", "python.html": "run.verdicts", "notebook.html": "equivalent"}

    assert [page for page, name in made.items() if name not in (site / page).read_text("utf-8")] == []
    assert (site / "decisions" / "index.html").is_file()
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
