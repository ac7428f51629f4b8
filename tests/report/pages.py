"""The page about a run, rendered once: tests ask different things of the same page."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

from vnuma.report.model.model import LoadedRun
from vnuma.report.page import render

_pages: list[tuple[LoadedRun, str]] = []


def page_text(run: LoadedRun) -> str:
    """As `render.page_text`, which gives a run the same page each time (a test holds that)."""
    known = next((page for past, page in _pages if past is run), None)
    if known is None:
        known = render.page_text(run)
        _pages.append((run, known))
    return known


VOID = {"meta", "br", "wbr", "link", "img", "input", "hr"}


class Outline(HTMLParser):
    """Elements of a page: their ids, links, addresses, texts; and whether tags are balanced."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.addresses: list[str] = []
        self.tags: Counter[str] = Counter()
        self.described: list[str] = []
        self.policy = ""
        self.text = ""
        self.rows: list[list[str]] = []
        """The texts of each table row's cells."""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags[tag] += 1
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        if tag not in VOID:
            self._open.append(tag)
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name == "href":
                (self.links if (value or "").startswith("#") else self.addresses).append(value or "")
            if name in ("src", "srcset", "data", "action", "poster", "xlink:href"):
                self.addresses.append(value or "")
            if name in ("aria-labelledby", "aria-describedby"):
                self.described += (value or "").split()
            assert not name.startswith("on"), f"{tag} has {name}"
            assert name != "style", f"{tag} has a style of its own, which the page's policy forbids"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without content."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Close an element: it must be the one opened last."""
        assert self._open
        assert self._open[-1] == tag, f"</{tag}> closes <{self._open[-1]}>"
        if tag in ("td", "th", "dt", "dd", "li"):
            self.text += " "
        self._open.pop()

    def handle_data(self, data: str) -> None:
        """Collect text, that of style and script apart."""
        if not self._open or self._open[-1] not in ("style", "script"):
            self.text += data
            if self.rows and {"td", "th"} & set(self._open):
                self.rows[-1][-1] += data


def text_of(page: str) -> str:
    """The page's words."""
    return " ".join(Outline(page).text.split())
