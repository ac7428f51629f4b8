"""CPU affinity from the host's own lists."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hosts import host_of
from vnuma.domain.arm.desired_settings import physical_cores, refuse_impossible
from vnuma.domain.vm.facts import HostFacts, NumaNode
from vnuma.errors import PreflightBlocked


def test_with_hyper_threading_only_every_second_logical_cpu_is_taken() -> None:
    """0-15 would be eight cores; 0, 2 .. 30 are sixteen."""
    assert physical_cores(host_of(nodes=2, cores=16, threads=2), 16) == tuple(range(0, 32, 2))


def test_without_hyper_threading_every_cpu_is_a_core() -> None:
    """Then 0-15 are sixteen cores."""
    assert physical_cores(host_of(nodes=2, cores=16, threads=1), 16) == tuple(range(16))


def test_a_vm_wider_than_a_node_is_spread_evenly() -> None:
    """Twenty vCPUs on two nodes of sixteen cores: ten on each."""
    host = host_of(nodes=2, cores=16, threads=2)
    cpus = physical_cores(host, 20)

    assert [sum(cpu in node.cpus for cpu in cpus) for node in host.numa_nodes] == [10, 10]


def test_spare_cores_come_from_the_same_node_while_it_has_some() -> None:
    """A narrow VM leaves its node's next core; a full node borrows one from the other."""
    host = host_of(nodes=2, cores=16, threads=2)

    assert physical_cores(host, 4, spare=1) == (0, 2, 4, 6, 8)
    assert physical_cores(host, 16, spare=1) == (*range(0, 32, 2), 32)


def test_named_nodes_are_filled_evenly_and_no_other_helps_out() -> None:
    """Both nodes carry half; a node that is full has no spare."""
    host = host_of(nodes=2, cores=16, threads=2)

    assert physical_cores(host, 4, nodes=(1, 0)) == (0, 2, 32, 34)
    with pytest.raises(PreflightBlocked, match="NUMA node 1 of esx01 has 16 physical cores"):
        physical_cores(host, 16, nodes=(1,), spare=1)


@given(st.integers(1, 4), st.integers(1, 32), st.integers(1, 2), st.integers(1, 128))
def test_no_core_is_taken_twice(nodes: int, cores: int, threads: int, vcpus: int) -> None:
    """As many CPUs as vCPUs, each of another core; or a refusal when there are too few."""
    host = host_of(nodes=nodes, cores=cores, threads=threads)
    if vcpus > nodes * cores:
        with pytest.raises(PreflightBlocked, match="physical cores"):
            physical_cores(host, vcpus)
        return
    cpus = physical_cores(host, vcpus)

    assert len({cpu // threads for cpu in cpus}) == len(cpus) == vcpus


def test_an_unknown_cpu_is_refused_with_the_hosts_range() -> None:
    """vSphere would refuse it too, but later."""
    with pytest.raises(PreflightBlocked, match="logical CPUs 0 to 63"):
        refuse_impossible((0, 64), 2, host_of(nodes=2, cores=16, threads=2))


def test_fewer_cpus_than_vcpus_are_refused() -> None:
    """vSphere wants at least one each."""
    with pytest.raises(PreflightBlocked, match="lists 3 CPUs for 4 vCPUs"):
        refuse_impossible((0, 2, 2, 4), 4, host_of(nodes=2, cores=16, threads=2))


def test_nodes_are_filled_from_the_lowest_number_whatever_their_order() -> None:
    """The host may list its nodes in any order."""
    host = host_of(nodes=2, cores=16, threads=2)

    assert physical_cores(replace(host, numa_nodes=host.numa_nodes[::-1]), 4) == (0, 2, 4, 6)


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
