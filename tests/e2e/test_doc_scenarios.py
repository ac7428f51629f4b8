"""docs/lab.md's scenarios are read by the lab itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.doc_blocks import ALL, Block, is_scenario
from vnuma import lab


@pytest.mark.parametrize("block", [one for one in ALL if is_scenario(one)], ids=str)
def test_the_lab_reads_each_scenario_of_its_page(block: Block, tmp_path: Path) -> None:
    """An unknown or misspelt key would end it before it is ready."""
    scenario, folder = tmp_path / "scenario.yml", tmp_path / "lab"
    scenario.write_text(block.text, encoding="utf-8")
    try:
        assert lab.up(scenario, folder).vms
    finally:
        lab.down(folder)
