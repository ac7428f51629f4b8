"""Which VMs a play begins with, and how many at a time."""

from __future__ import annotations

import os

from vnuma.engine.run.supervise import MAX_FORKS, SPARE, play_order, spare_descriptors
from vnuma.store.rows import Vm


def vm(name: str, host: str, vcenter: str = "v") -> Vm:
    """A VM of a run on a host of a vCenter."""
    return Vm(
        id=1,
        run_id=1,
        vm_key=f"{vcenter}/{name}",
        name=name,
        path=name,
        esxi_host=host,
        baseline=None,
        baseline_at=None,
        restored_at=None,
        restore_outcome=None,
        restore_detail=None,
    )


def test_each_host_gets_its_first_vm_before_any_gets_its_second() -> None:
    """However the inventory groups them, no host is idle while VMs of another wait for their turn."""
    rows = [vm("a1", "a"), vm("a2", "a"), vm("a3", "a"), vm("b1", "b"), vm("c1", "b", "other"), vm("b2", "b")]

    assert play_order(rows, together=False) == (["a1", "b1", "c1", "a2", "b2", "a3"], 6)


def test_no_more_wait_than_can_come_next() -> None:
    """Each waiting VM is a process: of twenty VMs on one host two are worked on."""
    rows = [vm(f"vm{number}", "a") for number in range(20)]

    assert play_order(rows, together=False)[1] == 2
    assert play_order(rows, together=True)[1] == 20


def test_memory_bounds_how_many_are_worked_on() -> None:
    """A thousand hosts do not make a thousand processes."""
    rows = [vm(f"vm{number}", f"esx{number}") for number in range(1000)]

    assert play_order(rows, together=False)[1] == MAX_FORKS


def test_descriptors_are_kept_free_for_a_restore_while_the_play_runs() -> None:
    """As many as name lookups, sessions and files of a restore may need; afterwards they are free."""
    before = os.dup(0)
    os.close(before)
    with spare_descriptors():
        meanwhile = os.dup(0)
        os.close(meanwhile)
    after = os.dup(0)
    os.close(after)

    assert meanwhile >= before + SPARE
    assert after == before
