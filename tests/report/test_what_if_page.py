"""The what-if page in a browser: it answers while one types, and its address holds the question."""

from __future__ import annotations

import shutil
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.estate.workbooks import export, write
from tests.report.browser import opened
from tests.report.serving import serving
from tools import what_if
from vnuma.checks.what_if import DEFAULTS
from vnuma.errors import StoreError


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the site's page runs on."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine")
    folder = tmp_path_factory.mktemp("what-if")
    what_if.runtime(folder / "runtime")
    return folder


BOXES = "[...document.querySelectorAll('form [type=checkbox]')].map((box) => box.name)"


@pytest.fixture(scope="module", params=["serve", pytest.param("static", marks=pytest.mark.long)])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The page of `vnuma serve`, which needs no store for it, and the one of the site."""
    if request.param == "serve":
        with serving(StoreError("There is no store.")) as server:
            yield f"{server}/what-if/"
        return
    with of_the_site(request.getfixturevalue("python")) as found:
        yield found


@pytest.fixture
def unfinished(tmp_path: Path) -> Iterator[str]:
    """The page of the site without the Python that it loads."""
    with of_the_site(tmp_path) as found:
        yield found


@contextmanager
def of_the_site(folder: Path) -> Iterator[str]:
    """The site's page in a folder, served."""
    for name, content in what_if.page().items():
        (folder / name).write_bytes(content)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as files:
        thread = threading.Thread(target=files.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{files.server_port}/"
        files.shutdown()
        thread.join()


def answered(page: Page) -> str:
    """The answer's first sentence, once there is one: the site's page loads Python first."""
    expect(page.locator("figure svg")).to_be_visible(timeout=60_000)
    return page.locator("h2.sentence").first.inner_text()


@pytest.mark.parametrize("width", [400, pytest.param(1280, marks=pytest.mark.long)])
def test_the_page_answers_while_one_types(browser: Browser, address: str, width: int) -> None:
    """By keyboard; what is typed is in the address, and whoever opens that gets the same answer."""
    page, requests, complaints = opened(browser, address, width)
    assert answered(page) == "The guest sees 1 NUMA node of 16 vCPUs."
    page.get_by_label("vCPUs", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("30")
    expect(page.locator("h2.sentence")).to_have_text("The guest sees 2 NUMA nodes of 15 vCPUs.")
    page.get_by_role("button", name="Use 2x15").press("Enter")
    expect(page.get_by_label("Cores per socket")).to_have_value("15")
    page.get_by_role("button", name="govc").press("Enter")
    expect(page.get_by_label("Code")).to_contain_text('"cores_per_socket": 15')
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    other, _, _ = opened(browser, page.url, width)
    assert answered(other) == answered(page)
    assert other.get_by_label("Cores per socket").input_value() == "15"
    assert {request.split("/")[2] for request in requests} == {address.split("/")[2]}
    assert complaints == []


@pytest.mark.parametrize("address", [pytest.param("static", marks=pytest.mark.long)], indirect=True)
def test_a_dropped_file_is_judged_in_the_browser(browser: Browser, address: str, tmp_path: Path) -> None:
    """Nothing is sent; each VM's topology can be drawn, and a hostile name stays text."""
    page, requests, complaints = opened(browser, address, 400)
    assert answered(page) == "The guest sees 1 NUMA node of 16 vCPUs."
    before = len(requests)
    page.set_input_files("#file", write(tmp_path / "<b>export.xlsx", export()))
    expect(page.locator("#judged h2")).to_have_text("<b>export.xlsx: 3 of 3 VMs break a rule", timeout=60_000)
    page.get_by_role("button", name="Draw vm0").press("Enter")
    expect(page.locator("h2.sentence")).to_have_text("The guest sees 1 NUMA node of 16 vCPUs.")
    assert page.get_by_label("Cores per socket").input_value() == "4"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    sent = [request.rpartition("/")[2] for request in requests[before:]]
    assert sent == ["calamine.whl"]
    assert complaints == []


@pytest.mark.long
def test_the_sites_python_is_compiled(python: Path) -> None:
    """Otherwise every page would compile the standard library while it loads, for seconds."""
    with zipfile.ZipFile(python / "runtime/python_stdlib.zip") as library:
        names = library.namelist()
    assert "json/decoder.pyc" in names
    assert [name for name in names if name.endswith(".py")] == []


def test_a_question_without_an_answer_gets_one_sentence(browser: Browser, address: str) -> None:
    """And no picture of what was asked before; a hostile name stays text."""
    page, _, complaints = opened(browser, f"{address}?vcpus=0&name=<img src=x onerror=alert(1)>", 400)
    refused = "vCPUs: '0' is not a number from 1 to 960. Correct it."
    expect(page.locator("#status")).to_have_text(refused, timeout=60_000)
    expect(page.locator("figure")).to_have_count(0)
    page.get_by_label("vCPUs", exact=True).fill("16")
    assert answered(page).startswith("The guest sees")
    assert page.locator("img").count() == 0
    assert complaints == []


def test_memory_beyond_the_host_is_swapped_and_one_is_no_plural(browser: Browser, address: str) -> None:
    """A VM of more memory than the host powers on unless all of it is reserved."""
    page, _, _ = opened(browser, f"{address}?memory=1000", 1280)
    assert "without swapping" in answered(page)
    page.goto(f"{address}?vcpus=1")
    assert answered(page) == "The guest sees 1 NUMA node of 1 vCPU."
    page.goto(f"{address}?vcpus=16&memory=64&per_socket=4&nodes=2&cores=16&node_gb=96&esxi=6.0")
    answered(page)
    expect(page.locator(".note strong").first).to_have_text("low confidence, else 1 node")


def test_a_processor_fills_in_the_host_and_a_shape_keeps_no_other_node_size(
    browser: Browser, address: str
) -> None:
    """Typing another number of cores deselects the processor."""
    asked = "coresPerNumaNode%3D4%0AlatencySensitivity%3Dhigh"
    page, _, _ = opened(browser, f"{address}?vcpus=48&set={asked}", 1280)
    answered(page)
    page.get_by_label("Processors").select_option("2x24")
    expect(page.get_by_label("Cores per node")).to_have_value("24")
    page.get_by_role("button", name="Use 2x24").click()
    assert page.locator("[name=set]").input_value() == "latencySensitivity=high"
    expect(page.locator("h2.sentence")).to_have_text("The guest sees 2 NUMA nodes of 24 vCPUs.")
    page.get_by_label("Cores per node").fill("25")
    expect(page.get_by_label("Processors")).to_have_value("")


def test_a_browser_without_webassembly_gets_one_sentence(browser: Browser, unfinished: str) -> None:
    """Old browsers lack it, and policies forbid it."""
    page = browser.new_page()
    page.add_init_script("delete globalThis.WebAssembly")
    page.goto(unfinished)
    expect(page.locator("#status")).to_contain_text("needs WebAssembly")


def test_a_page_without_its_python_gets_one_sentence(browser: Browser, unfinished: str) -> None:
    """And a workbook that is too large is refused before it is read."""
    page = browser.new_page()
    page.goto(unfinished)
    expect(page.locator("#status")).to_contain_text("Python did not load")
    page.evaluate(
        "() => { const files = new DataTransfer(); files.items.add(new File([new Uint8Array(1e8)], "
        "'export.xlsx')); const input = document.getElementById('file'); input.files = files.files; "
        "input.dispatchEvent(new Event('change')); }"
    )
    expect(page.locator("#judged .wrong")).to_contain_text("export.xlsx is larger than 60 MB.")


def test_the_form_and_the_answer_have_the_same_fields(browser: Browser, unfinished: str) -> None:
    """With the same values at the start; the picture's width is the page's, and an open box sends nothing."""
    page = browser.new_page()
    page.goto(unfinished)
    sent = page.evaluate("Object.fromEntries(new FormData(document.querySelector('form')))")
    boxes = dict.fromkeys(page.evaluate(BOXES), "")

    assert {**boxes, **sent} == {name: value for name, value in DEFAULTS.items() if name != "width"}
