"""Generated parts of documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.page_markers import write_between


def test_text_between_marks_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    """Writing twice gives the same page as writing once."""
    page = tmp_path / "page.md"
    page.write_text("before\n<b>\nold\n<e>\nafter\n", encoding="utf-8")
    for _ in range(2):
        write_between(page, "<b>", "<e>", "new")
    assert page.read_text(encoding="utf-8") == "before\n<b>\nnew\n<e>\nafter\n"


def test_a_page_without_marks_is_refused_and_kept(tmp_path: Path) -> None:
    """Nothing is written where the marks are lost."""
    page = tmp_path / "page.md"
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="has lost the marks"):
        write_between(page, "<b>", "<e>", "new")
    assert page.read_text(encoding="utf-8") == "no marks"
