"""Everything that keeps the page cache workload from a machine is one clear sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.workloads.linux import MACHINE
from vnuma.domain.vm.linux import LinuxFacts, Node
from vnuma.workloads.page_cache.settings import PageCache
from vnuma.workloads.page_cache.workload import obstacles_of

BUSY = replace(MACHINE, nodes=(Node(0, (0, 1), 8000, 500, 400), MACHINE.nodes[1]))
ONE_NODE = replace(MACHINE, nodes=MACHINE.nodes[:1], allowed_nodes=(0,))


def test_a_fit_machine_has_no_obstacle() -> None:
    """Two nodes, root, numactl, a disk: nothing prevents any placement."""
    for place in (0, 1, "interleave", "depleted"):
        assert list(obstacles_of(PageCache(memory_node=place), MACHINE)) == []


@pytest.mark.parametrize(
    ("machine", "settings", "words"),
    [
        (replace(MACHINE, is_root=False), {}, "db1: not root"),
        (replace(MACHINE, may_drop_caches=False), {}, "db1: root may not drop the page cache"),
        (replace(MACHINE, may_write=False), {}, "db1: /var/tmp cannot be written: it is read-only"),
        (replace(MACHINE, numactl=False), {}, "db1 has no numactl"),
        (BUSY, {}, "of node 0's memory 900 MB are free or cache, too little for a file of 1,472 MB"),
        (MACHINE, {"memory_node": "depleted", "sizes": (64,)}, "A file of 64 MB may lie on the depleted"),
        (
            replace(MACHINE, free_shm_mb=64),
            {"memory_node": "depleted"},
            "/dev/shm can take 64 MB; filling node 0 takes 5,952 MB",
        ),
        (replace(MACHINE, free_shm_mb=None), {"memory_node": "depleted"}, "/dev/shm can take nothing"),
        (replace(MACHINE, dd_times=False), {}, "dd does not report"),
        (replace(MACHINE, spread_page="1"), {}, "memory_spread_page is on"),
        (replace(MACHINE, file_system="tmpfs"), {}, "is a tmpfs"),
        (replace(MACHINE, free_disk_mb=100), {}, "has 100 MB free; the files take 1,472"),
        (replace(MACHINE, memory_limit_mb=512), {}, "memory limit is 512 MB"),
        (replace(MACHINE, allowed_nodes=(0,)), {"memory_node": 1}, "may not use memory of node 1"),
        (MACHINE, {"sizes": (9000,)}, "too little for a file of 9,000 MB"),
        (MACHINE, {"cpu_node": 2}, "has no NUMA node 2 to read from (nodes: 0, 1)"),
        (ONE_NODE, {"memory_node": 1}, "has no memory on NUMA node 1"),
        (ONE_NODE, {"memory_node": "interleave"}, "has one NUMA node only"),
        (ONE_NODE, {"memory_node": "depleted"}, "has one NUMA node only"),
    ],
)
def test_each_obstacle_is_one_sentence(machine: LinuxFacts, settings: dict[str, object], words: str) -> None:
    """One thing is wrong: one obstacle names it, and says what helps."""
    (found,) = obstacles_of(PageCache.model_validate(settings), machine)

    assert words in found.what
    assert found.fix
