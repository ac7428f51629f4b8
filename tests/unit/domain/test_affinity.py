"""CPU affinity from the host's own lists."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hosts import host_of
from vnuma.domain.arm.desired_settings import physical_cores, refuse_impossible
from vnuma.domain.vm.facts import HostFacts, NumaNode
from vnuma.errors import PreflightBlocked


@pytest.mark.parametrize(
    ("threads", "vcpus", "asked", "cpus"),
    [
        (2, 16, {}, tuple(range(0, 32, 2))),
        (1, 16, {}, tuple(range(16))),
        (2, 4, {"spare": 1}, (0, 2, 4, 6, 8)),
        (2, 16, {"spare": 1}, (*range(0, 32, 2), 32)),
        (2, 4, {"nodes": (1, 0)}, (0, 2, 32, 34)),
        (2, 16, {"nodes": (1,), "spare": 1}, None),
    ],
)
def test_each_cpu_is_of_another_core_of_the_lowest_nodes(
    threads: int, vcpus: int, asked: dict[str, Any], cpus: tuple[int, ...] | None
) -> None:
    """A full node borrows a spare core from the other, but not from one that was not named."""
    host = host_of(nodes=2, cores=16, threads=threads)
    for listed in (host, replace(host, numa_nodes=host.numa_nodes[::-1])):
        if cpus is None:
            with pytest.raises(PreflightBlocked):
                physical_cores(listed, vcpus, **asked)
        else:
            assert physical_cores(listed, vcpus, **asked) == cpus


@given(st.integers(1, 4), st.integers(1, 32), st.integers(1, 2), st.integers(1, 128))
def test_no_core_is_taken_twice(nodes: int, cores: int, threads: int, vcpus: int) -> None:
    """As many CPUs as vCPUs, each of another core; or a refusal when there are too few."""
    host = host_of(nodes=nodes, cores=cores, threads=threads)
    if vcpus > nodes * cores:
        with pytest.raises(PreflightBlocked):
            physical_cores(host, vcpus)
        return
    cpus = physical_cores(host, vcpus)

    assert len({cpu // threads for cpu in cpus}) == len(cpus) == vcpus


@pytest.mark.parametrize(
    ("cpus", "vcpus", "possible"),
    [((0, 63), 2, True), ((0, 64), 2, False), ((0, 2, 4, 6), 4, True), ((0, 2, 2, 4), 4, False)],
)
def test_a_list_needs_a_cpu_of_the_host_for_each_vcpu(
    cpus: tuple[int, ...], vcpus: int, possible: bool
) -> None:
    """vSphere would refuse it too, but later."""
    with nullcontext() if possible else pytest.raises(PreflightBlocked):
        refuse_impossible(cpus, vcpus, host_of(nodes=2, cores=16, threads=2))


def uneven_host(*cores: int) -> HostFacts:
    """A host whose nodes have these numbers of cores, two threads each."""
    first, nodes = 0, []
    for number, count in enumerate(cores):
        nodes.append(NumaNode(number, tuple(range(first, first + 2 * count)), 65536))
        first += 2 * count
    host = host_of(nodes=len(cores))
    return replace(host, cores=sum(cores), threads=first, numa_nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("cores", "vcpus", "used"),
    [
        ((16, 16), 20, [10, 10]),
        ((4, 16, 16), 24, [0, 12, 12]),
        ((16, 4, 16), 24, [12, 0, 12]),
        ((8, 4, 8, 16), 24, [8, 0, 0, 16]),
        ((4, 4, 16), 16, [0, 0, 16]),
        ((4, 8, 8), 20, [4, 8, 8]),
    ],
)
def test_uneven_nodes_are_as_few_as_can_hold_the_vm(
    cores: tuple[int, ...], vcpus: int, used: list[int]
) -> None:
    """A small node before two large ones is left out; of equally few, the lowest numbered are taken."""
    host = uneven_host(*cores)
    cpus = physical_cores(host, vcpus)

    assert [sum(cpu in node.cpus for cpu in cpus) for node in host.numa_nodes] == used
