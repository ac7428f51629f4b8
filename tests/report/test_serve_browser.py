"""`vnuma serve` in a browser: it follows a run, outlives a restart, and fits a small screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.report.browser import opened
from tests.report.build import Story, build, study_text
from tests.report.serving import serving
from tests.support.stores import new_store
from vnuma.serve import app, reader
from vnuma.serve.connections import Access
from vnuma.store import runs
from vnuma.store.rows import RunState

EVIL = "<img src=x onerror=alert(1)>"


def test_a_page_follows_its_run_over_a_restart(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes is put in; the rest of the page, and the keyboard's place, stay as they are."""
    for module in (app, reader):
        monkeypatch.setattr(module, "POLL_S", 0.05)
    store = new_store(tmp_path / "vnuma.db")
    text = study_text(vms=f"'{EVIL}'", sizes="500", forms="client")
    run = build(store, Story(text=text, stop_after=9, state=RunState.RUNNING))
    with serving(store) as address:
        port = int(address.rpartition(":")[2])
        page, requests, complaints = opened(browser, f"{address}/runs/quick.1", 400)
        assert page.title().startswith("SIMULATED: quick.1")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.locator("img").count() == 0
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
        page.locator(".blocks").evaluate("table => table.parentElement.focus()")
        with store.write() as connection:
            runs.set_run_state(connection, run.id, RunState.STOPPED)
        expect(page.locator("h1")).to_have_text("quick.1: stopped")
        assert "Cells of" in page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert complaints == []
    expect(page.locator("#connection")).to_contain_text("Connection lost")
    with store.write() as connection:
        runs.set_run_state(connection, run.id, RunState.FINISHED)
    with serving(store, Access(port=port)):
        expect(page.locator("h1")).to_have_text("quick.1: finished", timeout=30_000)
        expect(page.locator("#connection")).to_have_text("")
        assert {request.split("/")[2] for request in requests} == {f"127.0.0.1:{port}"}
        plain, _, complaints = opened(browser, f"{address}/runs/quick.1", 1040, scripts=False)
        assert plain.locator(".verdicts").is_visible()
        assert complaints == []
