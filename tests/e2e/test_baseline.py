"""`vnuma baseline`: what a VM is restored to, and who changed it since."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import in_json, vnuma_here
from tests.support.looking import change_by_hand
from tests.support.stores import new_store


def test_a_baseline_is_shown_and_compared_with_the_vm(lab: LabFactory, tmp_path: Path) -> None:
    """Our changes and somebody else's are distinguished; after restoring nothing differs."""
    home = tmp_path / "home"
    running = lab()
    steps = Steps.prepared(home, running)
    store = ("--store", f"sqlite:///{home / 'vnuma.db'}")
    steps.shape(steps.take())

    shown = in_json("baseline", "show", "sql16", *store)
    assert (shown["run"], shown["at_baseline"]) == (steps.run.name, False)
    assert shown["settings"]["numCoresPerSocket"] == 4

    shares = vim.SharesInfo(level="high", shares=0)
    change_by_hand(running, cpuAllocation=vim.ResourceAllocationInfo(shares=shares))
    found = in_json("baseline", "diff", "sql16", *store)
    by = {item["setting"]: item["by"] for item in found["differences"]}
    assert by["numCoresPerSocket"] == "us"
    assert by["cpuShares"] == "somebody else"

    steps.restore("baseline")
    after = in_json("baseline", "diff", "sql16", *store)
    assert after["differences"] == []


@pytest.mark.parametrize("words", [("baseline", "show"), ("restore",)])
def test_a_vm_without_a_baseline_is_an_input_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Exit code 3."""
    new_store(tmp_path / "vnuma.db")
    ran = vnuma_here(*words, "sql16", "--store", f"sqlite:///{tmp_path / 'vnuma.db'}")
    assert ran.code == 3, ran.text
