"""Pages for readers who do not see, or not well: axe, in light and dark, finds nothing serious."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.estate.build import checked, estate_of
from tests.report.browser import opened
from tests.report.build import Lost, Story, build, study_text
from tests.report.serving import serving
from tests.support.stores import new_store
from vnuma.report.check.as_page import as_page
from vnuma.report.comparison.two_runs import compare_runs
from vnuma.report.model.model import load_run
from vnuma.report.page.comparison_page import write_comparison
from vnuma.report.page.render import write_report
from vnuma.store.rows import RunState

PAGES = ("report", "/what-if/?vcpus=30&edition=standard")
MORE = (
    "check",
    "comparison",
    "/runs/quick.3",
    "many VMs",
    "/",
    "/compare?before=quick.1&after=quick.2",
    "/estate",
    "/audit",
    "/runs/none",
)
SCHEMES: dict[Literal["light", "dark"], dict[str, object]] = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast"]},
}
"""What axe is asked in each: colours alone differ."""


TEXT = study_text(sizes="500", forms="client")


@pytest.fixture(scope="module")
def address_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Where a page is: a file that is written when it is asked for, or on a server."""
    folder = tmp_path_factory.mktemp("axe")
    store = new_store(folder / "vnuma.db")
    build(store, Story(text=TEXT, lost={("4x4", 3): (Lost(),)}))
    build(store, Story(text=TEXT, host="esx02"))
    build(store, Story(text=TEXT, stop_after=9, state=RunState.RUNNING))

    def many(path: Path) -> None:
        vms = TEXT.replace("quick", "four").replace("[sql16]", "[a, b, c, d]")
        write_report(load_run(store, build(store, Story(text=vms)).name), path, "html")[0]

    files: dict[str, Callable[[Path], object]] = {
        "report": lambda path: write_report(load_run(store, "quick.1"), path, "html")[0],
        "many VMs": many,
        "check": lambda path: path.write_text(as_page(checked(estate_of("a", "b", "c"))), encoding="utf-8"),
        "comparison": lambda path: write_comparison(
            compare_runs([load_run(store, "quick.1")], [load_run(store, "quick.2")]), None, path
        ),
    }

    with serving(store) as server:

        def address(name: str) -> str:
            if name not in files:
                return server + name
            path = folder / f"{name}.html"
            files[name](path)
            return path.as_uri()

        yield address


@pytest.mark.parametrize("name", [*PAGES, *(pytest.param(name, marks=pytest.mark.long) for name in MORE)])
def test_axe_finds_nothing_serious(browser: Browser, address_of: Callable[[str], str], name: str) -> None:
    """With everything unfolded; serious and critical by axe's own reckoning."""
    page, _, _ = opened(browser, address_of(name), 1040)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    for scheme, asked in SCHEMES.items():
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, options=asked).response["violations"]

        assert [
            (one["id"], [node["html"][:120] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in ("serious", "critical")
        ] == [], scheme
