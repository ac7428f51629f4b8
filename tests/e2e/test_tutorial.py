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
@pytest.mark.parametrize("blocks", [1, 6])
def test_every_command_of_the_tutorial_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    """From the lab's start to its end; what the page shows of a run's last lines is what a run says.

    The page's own study has six blocks, which a verdict needs. One is enough for all commands.
    """
    text = PAGE.read_text(encoding="utf-8")
    (study,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)
    lines = [
        line for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()
    ]
    assert "blocks: 6" in study
    (tmp_path / "first.yml").write_text(study.replace("blocks: 6", f"blocks: {blocks}"), encoding="utf-8")
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
    assert ("8 nodes is slower by" in shown and "Use 1x16 or 8 sockets" in shown) is (blocks == 6)
    assert list(tmp_path.glob("reports/first.1*.html"))
