"""A guest that is reached by a shell: Linux only, and measured once its CPUs are quiet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.unit.workloads.linux import MACHINE
from vnuma.domain.study.study import Quiet
from vnuma.engine.access.guest_shell import linux_facts_of
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.cell.boot import wait_quiet
from vnuma.engine.doctor.diagnose import _machine
from vnuma.errors import PreflightBlocked
from vnuma.workloads.page_cache.settings import PageCache
from vnuma.workloads.shell import Output

BUSY = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu  50 0 0 50 0 0 0 0 0 0\n"
IDLE = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu  5 0 0 95 0 0 0 0 0 0\n"


@dataclass
class Told:
    """A shell that answers with these texts, one after the other."""

    texts: Iterator[str]

    def __call__(self, script: str, within_s: float = 60) -> Output:
        """The next text."""
        return Output(0, next(self.texts), "")


@pytest.mark.parametrize(
    ("texts", "for_s", "timeout_s", "quiet", "percent"),
    [
        ([IDLE], 30, 600, True, 5.0),
        ([BUSY, BUSY, IDLE], 30, 600, True, 5.0),
        ([BUSY], 30, 0, False, 50.0),
        (["no such file"], 30, 600, None, None),
        ([], 0, 600, None, None),
    ],
)
def test_a_guest_is_waited_for_until_it_is_quiet_or_time_is_over(
    texts: list[str], for_s: float, timeout_s: float, quiet: bool | None, percent: float | None
) -> None:
    """A busy one is measured at the end all the same; what is not known is never said to be quiet."""
    heeded: list[None] = []

    found = wait_quiet(
        Told(iter(texts)),
        Quiet.model_construct(cpu_percent=10, for_s=for_s, timeout_s=timeout_s),
        lambda: heeded.append(None),
    )

    assert (found.quiet, found.guest_cpu_percent) == (quiet, percent and pytest.approx(percent))
    assert len(heeded) == texts.count(BUSY) - (quiet is False)


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
        linux_facts_of(["sql16"], Inventory(inventory), PageCache(name="page_cache"))


@pytest.mark.parametrize(("shaped", "state"), [(False, "warn"), (True, "ok")])
def test_one_node_is_a_warning_only_where_no_study_shapes_the_guest(shaped: bool, state: str) -> None:
    """A VM's nodes now are not those of a study's arms."""
    one = replace(MACHINE, nodes=MACHINE.nodes[:1])

    assert [item.state for item in _machine("guest", one, shaped=shaped) if item.subject == "NUMA"] == [state]
