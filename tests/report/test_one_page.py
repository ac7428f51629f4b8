"""A run on one page: what is pasted or put before somebody says the same as the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.report.build import GOLDEN_STORY, Load, Story, study_text
from vnuma.report.charts.pictures import composed
from vnuma.report.model.methods import scope
from vnuma.report.model.trust import limit_statements
from vnuma.report.model.words import answer_words
from vnuma.report.page.render import sheet_of, write_report


def test_markdown_has_answer_scope_verdicts_and_limits(
    loaded: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order; that it is simulated comes first, and is in its name too."""
    monkeypatch.chdir(tmp_path)
    run = loaded(GOLDEN_STORY)
    ((vm, found),) = run.primary
    (path,) = write_report(run, None, "markdown")
    text = path.read_text(encoding="utf-8")
    limits = [f"- **{item.kind}**: {item.what}" for item in limit_statements(run, vm, found)]
    parts = ["**SIMULATED", answer_words(run, found), scope(run, vm, found), "| 16x1 | slower by", *limits]
    places = [text.index(part) for part in parts]

    assert path == Path("reports/quick.1.simulated.md")
    assert places == sorted(places)


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pictures_are_one_file_a_vm(loaded: Load, tmp_path: Path, kind: str, begins: bytes) -> None:
    """Named after it where there are several."""
    story = Story(text=study_text(vms="sql-a, sql-b", sizes="500", forms="client"))
    written = write_report(loaded(story), tmp_path / f"run.{kind}", "png" if kind == "png" else "pdf")

    assert [path.name for path in written] == [f"run-sql-a.{kind}", f"run-sql-b.{kind}"]
    assert all(path.read_bytes().startswith(begins) for path in written)


def test_the_customers_page_is_one_page_of_a4(loaded: Load, tmp_path: Path) -> None:
    """It has question, answer, scope, topologies and limits, and says twice that it is simulated."""
    run = loaded(GOLDEN_STORY)
    (path,) = write_report(run, tmp_path / "run.pdf", "pdf")
    blocks = list(sheet_of(run, *run.primary[0]))
    texts = re.sub(r"<[^>]+>", " ", composed(blocks, 794, a4=True))

    assert re.findall(rb"/MediaBox \[([^]]*)\]", path.read_bytes()) == [b"0 0 595 842"]
    assert texts.count("SIMULATED") == 2
    assert [block[1] for block in blocks if block[0] == "head"] == [
        answer_words(run, run.result.primary[0]),
        *("Topologies as asked for, predicted and seen", "How far this goes"),
    ]
