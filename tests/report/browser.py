"""Pages opened in a browser, with what they asked for and complained of."""

from __future__ import annotations

from playwright.sync_api import Browser, Page


def opened(browser: Browser, address: str, width: int, **context: bool) -> tuple[Page, list[str], list[str]]:
    """The page at a width, with what it requested and what it complained of."""
    page = browser.new_context(
        viewport={"width": width, "height": 800}, java_script_enabled=context.get("scripts", True)
    ).new_page()
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    return page, requests, complaints
