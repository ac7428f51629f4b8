"""The page of a check in a browser: thousands of VMs, search, filters, keyboard, no network."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

import pytest
from playwright.sync_api import Browser

from tests.estate.build import checked, estate_of
from tests.report.browser import opened
from vnuma.report.check.as_page import as_page


def written(folder: Path, vms: int) -> str:
    """Where a page about that many VMs is."""
    file = folder / "check.html"
    file.write_text(as_page(checked(estate_of(*(f"sql-{n:05d}" for n in range(vms))))), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page about more VMs than it shows at once."""
    return written(tmp_path_factory.mktemp("check"), 240)


@pytest.mark.long
def test_thousands_of_vms_open_at_once(browser: Browser, tmp_path: Path) -> None:
    """A page of the list is there as soon as the file is loaded; nothing else is requested."""
    address = written(tmp_path, 2_500)
    page, requests, complaints = opened(browser, address, 1040)
    assert (requests, complaints) == ([address], [])
    assert page.locator("#rows > details").count() == 100
    assert page.locator("#count").inner_text() == "2,500 of 2,500 VMs"
    assert page.locator("#page").inner_text() == "Page 1 of 25"


def test_search_and_filters_choose_and_stay_in_the_address(browser: Browser, address: str) -> None:
    """Search looks in everything; a view can be sent as a link."""
    page, _, complaints = opened(browser, address, 1040)
    page.keyboard.press("/")
    page.keyboard.type("sql-00171")
    assert page.locator("#rows b").all_inner_texts() == ["sql-00171"]
    again, _, _ = opened(browser, page.url, 1040)
    assert again.locator("#rows b").all_inner_texts() == ["sql-00171"]
    page.keyboard.press("Escape")
    page.locator('[data-filter="block"]').click()
    assert page.locator("#count").inner_text() == "0 of 240 VMs"
    page.locator('[data-rule="T11"]').click()
    assert page.locator("#count").inner_text() == "240 of 240 VMs"
    assert complaints == []


def test_vms_with_rules_that_were_not_evaluated_can_be_shown_alone(browser: Browser, tmp_path: Path) -> None:
    """Pressed it narrows the list; released, and in a link, it is as before."""
    result = checked(estate_of("asked", "seen", "other"))
    vms = [
        replace(vm, not_evaluated={"S01": "unreadable"} if vm.name == "asked" else {}) for vm in result.vms
    ]
    file = tmp_path / "check.html"
    file.write_text(as_page(replace(result, vms=tuple(vms))), encoding="utf-8")
    page, _, complaints = opened(browser, file.as_uri(), 1040)
    button = page.get_by_role("button", name="With rules not evaluated 1")
    assert page.locator("#rows b").count() == 3
    page.locator("#find").fill("unreadable")  # evidence is searched too
    assert page.locator("#rows b").all_inner_texts() == ["asked"]
    page.locator("#find").fill("")

    button.click()

    assert page.locator("#rows b").all_inner_texts() == ["asked"]
    again, _, _ = opened(browser, page.url, 1040)
    assert again.locator("#rows b").all_inner_texts() == ["asked"]
    button.click()
    assert page.locator("#rows b").count() == 3
    assert complaints == []


def test_a_row_opens_by_keyboard_with_fix_and_source(browser: Browser, address: str) -> None:
    """Enter on a VM shows what was observed, the consequence, the fix and the source."""
    page, _, complaints = opened(browser, address, 1040)
    first = page.locator("#rows > details").first
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    text = first.locator(".body").inner_text()
    assert "vnuma check --explain" in text
    page.locator("#next").focus()
    page.keyboard.press("Enter")
    assert page.locator("#page").inner_text() == "Page 2 of 3"
    assert complaints == []


def test_a_check_never_scrolls_sideways(browser: Browser, address: str) -> None:
    """At every width the page fits, with a VM unfolded."""
    page, _, _ = opened(browser, address, 1040)
    page.locator("#rows > details summary").first.click()
    for width in (1040, 400, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_the_worst_vms_are_there(browser: Browser, address: str) -> None:
    """Where scripts do not run, counts, rules and the first VMs can be read."""
    page, _, _ = opened(browser, address, 1040, scripts=False)
    assert page.locator("#rows .fixed").count() == 100
    assert page.locator("noscript").inner_text().startswith("Without scripts the first 100 VMs")
    assert not page.locator("#tools").is_visible()


def test_names_cannot_break_out_of_the_page(browser: Browser, tmp_path: Path) -> None:
    """A VM may be called anything: it is text everywhere."""
    evil = "</script><img src=x onerror=alert(1)>"
    file = tmp_path / "check.html"
    file.write_text(as_page(checked(estate_of(evil))), encoding="utf-8")
    page, requests, complaints = opened(browser, file.as_uri(), 1040)
    assert page.locator("#rows b").first.inner_text() == evil
    assert (len(requests), complaints) == (1, [])


def test_paper_has_at_most_ten_pages(browser: Browser, address: str) -> None:
    """Of 240 VMs: the rules with how many VMs break them, and a line for each VM."""
    page, _, complaints = opened(browser, address, 1040)
    paper = page.pdf(format="A4", prefer_css_page_size=True)
    page.emulate_media(media="print")

    assert 1 < len(re.findall(rb"/Type ?/Page\b", paper)) <= 10
    assert page.locator("#count").is_visible()
    assert not page.locator("#find").is_visible()
    assert complaints == []


def test_a_reader_of_the_screen_hears_severities_as_words(browser: Browser, address: str) -> None:
    """A shape has no sound: each rule of a row has its severity as text; the search has a label."""
    page, _, _ = opened(browser, address, 1040)
    summary = page.locator("#rows > details > summary").first
    spoken = summary.evaluate(
        "row => { const said = row.cloneNode(true);"
        " said.querySelectorAll('[aria-hidden=true]').forEach(sign => sign.remove());"
        " return said.textContent; }"
    )
    assert "block T11" in spoken
    assert not set("\u25a0\u25b2\u25cf") & set(spoken)
    assert page.get_by_label("Find", exact=True).count() == 1


def test_a_fix_is_copied_for_its_own_vm(browser: Browser, address: str) -> None:
    """Each tool's text names this VM by its UUID, though all VMs share the text."""
    page, _, complaints = opened(browser, f"{address}#find=sql-00171", 1040)
    page.locator("#rows > details > summary").click()
    fix = page.locator(".f", has_text="explain T11").locator(".paste", has_text="govc vm.change")
    fix.locator("summary").click()
    uuid = str(uuid5(NAMESPACE_DNS, "sql-00171"))
    assert f"govc vm.change -vm.uuid={uuid} -cpu-hot-add-enabled=false" in fix.locator("pre").inner_text()
    assert fix.get_by_role("button", name="Copy the fix for govc").is_visible()
    assert complaints == []
