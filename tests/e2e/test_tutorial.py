"""docs/tutorial.md as a newcomer follows it: its study, and every command of it, in order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.cli import vnuma
from tests.support.installation import ROOT

PAGE = ROOT / "docs" / "tutorial.md"


@pytest.mark.long
def test_every_command_of_the_tutorial_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the lab's start to its end; what the page shows of a run's last lines is what a run says."""
    text = PAGE.read_text(encoding="utf-8")
    (study,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)
    lines = [
        line for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()
    ]
    (tmp_path / "first.yml").write_text(study, encoding="utf-8")
    monkeypatch.delenv("VNUMA_INVENTORY", raising=False)
    said = {}
    try:
        for line in lines:
            ran = vnuma(*shlex.split(line)[1:], cwd=tmp_path)
            assert ran.code == 0, f"{line}\n{ran.text}"
            said[line] = ran.text
    finally:
        vnuma("lab", "down", "--yes", cwd=tmp_path)

    ended = said["vnuma run first.yml --yes"]
    shown = " ".join(ended.split())
    assert [words for words in ("8 nodes is slower by", "Use 1x16 or 8 sockets") if words not in shown] == []
    assert list(tmp_path.glob("reports/first.1*.html"))
