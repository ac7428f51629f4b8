"""The page in a browser: nothing leaves it, nothing goes wrong in it, and it fits a small screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.browser import opened
from tests.report.build import Load, Lost, Story, study_text
from vnuma.report.page.render import write_report

OVER_THE_EDGE = """
[...document.querySelectorAll("h1, h2, h3, p, li, dt, dd, figcaption")]
  .filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.textContent)
"""


@pytest.fixture(scope="module")
def address(loaded: Load, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with everything on it, as a file."""
    story = Story(text=study_text(sizes="500, 1000, 2000"), lost={("4x4", 3): (Lost(),)})
    return write_report(loaded(story), tmp_path_factory.mktemp("page") / "page.html", "html")[0].as_uri()


def test_nothing_leaves_the_page_and_nothing_goes_wrong(browser: Browser, address: str) -> None:
    """The file is the only request, the console stays empty, title and banner say simulated."""
    page, requests, complaints = opened(browser, address, 1040)

    assert requests == [address]
    assert complaints == []
    assert page.title().startswith("SIMULATED: quick.1")
    assert page.locator(".banner").is_visible()


def test_the_page_never_scrolls_sideways(browser: Browser, address: str) -> None:
    """At every width the page fits; wide tables scroll by themselves, with everything unfolded too."""
    page, _, _ = opened(browser, address, 1600)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")

    for width in (1600, 1040, 700, 400, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OVER_THE_EDGE) == [], width  # a name that runs over its value


def test_charts_never_shrink_their_text_at_400_pixels(browser: Browser, address: str) -> None:
    """Every visible chart is drawn at its own size on a small screen."""
    page, _, _ = opened(browser, address, 400)
    scales = page.evaluate(
        "[...document.querySelectorAll('figure svg')].filter((svg) => svg.getBoundingClientRect().width > 0)"
        ".map((svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"
    )

    assert len(scales) > 5
    assert min(scales) > 0.93


def test_the_page_says_everything_without_scripts(browser: Browser, address: str) -> None:
    """With scripts off charts and tables stand, and the button that needs them is hidden."""
    page, _, complaints = opened(browser, address, 1040, scripts=False)

    assert page.locator("figure svg").first.is_visible()
    assert page.get_by_text("How far this goes").nth(1).is_visible()
    assert not page.locator(".copy button").is_visible()
    assert complaints == []


def test_the_keyboard_reaches_the_answer_first(browser: Browser, address: str) -> None:
    """The first stop of the Tab key is the link that skips to the answer."""
    page, _, _ = opened(browser, address, 1040)
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


def test_paper_has_at_most_five_pages(browser: Browser, address: str) -> None:
    """What is folded on the screen is not printed, and the page says so; the banner is on it."""
    page, _, _ = opened(browser, address, 1040)
    paper = page.pdf(format="A4", prefer_css_page_size=True)
    page.emulate_media(media="print")

    assert 1 < len(re.findall(rb"/Type ?/Page\b", paper)) <= 5
    assert not page.locator("pre", has_text="name: quick").first.is_visible()
    assert page.locator(".banner").is_visible()


def test_the_verdicts_are_seen_without_scrolling(browser: Browser, address: str) -> None:
    """On an ordinary screen, each with its interval drawn in its row, as wide as its column."""
    page, _, _ = opened(browser, address, 1280)
    rows = page.locator(".verdicts tbody tr")

    assert rows.count() == 5
    assert rows.last.evaluate("row => row.getBoundingClientRect().bottom") < 800
    for row in rows.all()[1:]:
        drawn = row.locator("svg .interval").evaluate("line => line.getBoundingClientRect().width")
        assert drawn > 10
        assert row.locator("td.drawn > svg").evaluate("svg => svg.getBoundingClientRect().width") > 200


def test_many_vms_are_one_table_with_each_vm_folded_below_it(
    browser: Browser, loaded: Load, tmp_path: Path
) -> None:
    """A row for each VM, a column for each arm; a VM's name opens its part."""
    vms = ", ".join(f"sql-{number}" for number in range(1, 5))
    story = Story(text=study_text(vms=vms, sizes="500", forms="client"))
    address = write_report(loaded(story), tmp_path / "many.html", "html")[0].as_uri()
    page, _, _ = opened(browser, address, 1280)

    assert page.locator(".matrix tbody tr").count() == 4
    assert page.locator(".matrix thead th").all_inner_texts() == ["VM", "Host", "2x8", "4x4", "8x2", "16x1"]
    assert "4 slower" in page.locator(".matrix tfoot").inner_text()
    assert not page.locator("#vm3-table").is_visible()
    page.get_by_role("link", name="sql-3").click()
    assert page.locator("#vm3-table").is_visible()
