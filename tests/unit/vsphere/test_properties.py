"""Every property that is read has a row that says whether a real server was ever seen to answer it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyVmomi import vim
from pyVmomi.VmomiSupport import GetWsdlName

from tools.properties_doc import PAGE, counts, markdown, seen
from vnuma.vsphere import estate_changes, facts, inventory, read, surroundings, uptime, wait

ROOT = Path(__file__).parents[3]
VM = (
    *(*facts.VM_PATHS, *facts.VM_STATE_PATHS, *facts.paths(), *estate_changes._VM_MARKS),
    *(*estate_changes.GUEST_MARKS, *surroundings._VM_PATHS, *surroundings._NEIGHBOUR_PATHS),
    *uptime.RUNNING_PATHS,
)
READ: dict[str, set[str]] = {
    "VirtualMachine": {path for path in VM if "[" not in path},  # a key of extraConfig is part of it
    "HostSystem": {*facts.HOST_PATHS, *estate_changes._HOST_MARKS},
    "Task": set(wait._TASK_PATHS),
    **{
        GetWsdlName(kind): set(paths)
        for wanted in (read.CLUSTERS, inventory.CONTAINERS)
        for kind, paths in wanted.items()
        if kind is not vim.ManagedEntity
    },
}


@pytest.mark.parametrize("kind", READ)
def test_a_property_that_is_read_has_a_row(kind: str) -> None:
    """A new one is looked up in recordings of real servers first."""
    known = seen()[kind]
    host_options = {path for path in READ[kind] if path.startswith("config.option")}

    assert READ[kind] - host_options - known.keys() == set()


def test_the_page_is_the_table() -> None:
    """`python -m tools.properties_doc` writes it."""
    assert PAGE.read_text(encoding="utf-8") == markdown()


def test_the_readme_has_the_figures() -> None:
    """How many properties real servers were seen to answer."""
    real, every = counts()

    assert f"{real} of {every} properties" in " ".join((ROOT / "README.md").read_text("utf-8").split())
