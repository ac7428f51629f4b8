"""A workload that runs by a shell refuses a machine with Windows before it asks it anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vnuma.engine.access.guest_shell import linux_facts_of
from vnuma.errors import PreflightBlocked
from vnuma.workloads.page_cache.settings import PageCache


@pytest.mark.parametrize(
    "variables",
    [
        {"ansible_connection": "winrm"},
        {"ansible_connection": "ansible.builtin.psrp"},
        {"ansible_connection": "ssh", "ansible_shell_type": "powershell"},
        {"ansible_shell_type": "cmd"},
    ],
)
def test_a_windows_machine_is_refused(tmp_path: Path, variables: dict[str, str]) -> None:
    """As the inventory's own variables say, by which Ansible reaches it."""
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": {"sql16": variables}}}), "utf-8")

    with pytest.raises(PreflightBlocked):
        linux_facts_of(["sql16"], inventory, PageCache(name="page_cache"))
