"""CPUs on the log writers' node and on another: equally many, none of a writer's, whatever the nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnuma.sqlserver.instance.call_counters import LogWriter, worker_cpus

TWO = {0: (0, 1, 2, 3), 1: (4, 5, 6, 7)}


def writer(cpu: int, memory_node: int = 0, number: int = 0) -> LogWriter:
    """One on a hidden scheduler."""
    return LogWriter(3 + number, 1048577 + number, cpu, memory_node, memory_node, "HIDDEN ONLINE")


def test_the_writers_cpu_is_left_out_on_either_side() -> None:
    """On the other node it is the one in the same place."""
    found = worker_cpus([writer(1)], TWO)

    assert found is not None
    assert (found.writer_node, found.other_node) == (0, 1)
    assert found.cpus("same_node") == (0, 2, 3)
    assert found.cpus("other_node") == (4, 6, 7)
    assert found.left_out == (1, 5)


def test_a_cpu_that_is_not_named_counts_as_the_lowest_free_one() -> None:
    """255 says: bound to no CPU; the writers still need as many."""
    found = worker_cpus([writer(255), writer(0, number=1), writer(255, number=2)], TWO)

    assert found is not None
    assert found.same == (3,)
    assert found.other == (7,)


def test_writers_on_the_last_node_are_compared_with_the_first() -> None:
    """There is no next one."""
    found = worker_cpus([writer(4, memory_node=1)], TWO)

    assert found is not None
    assert (found.writer_node, found.other_node) == (1, 0)
    assert found.same == (5, 6, 7)


def test_where_nothing_can_be_compared_there_are_no_sides() -> None:
    """One node, writers on two nodes, none at all, or a node that has no CPU in use."""
    assert worker_cpus([writer(0)], {0: (0, 1)}) is None
    assert worker_cpus([writer(0), writer(4, memory_node=1)], TWO) is None
    assert worker_cpus([], TWO) is None
    assert worker_cpus([writer(8, memory_node=2)], TWO) is None
    assert worker_cpus([writer(0)], {0: (0,), 1: (1,)}) is None


@given(
    st.lists(st.integers(1, 12), min_size=2, max_size=4),
    st.lists(st.integers(0, 47) | st.just(255), min_size=1, max_size=4),
    st.booleans(),
)
def test_sides_are_equal_and_free_of_writers(sizes: list[int], cpus: list[int], interleaved: bool) -> None:
    """Whatever the nodes' sizes and the way in which soft-NUMA numbers their CPUs."""
    total = sum(sizes)
    numbers = list(range(total))
    if interleaved:
        numbers = numbers[::2] + numbers[1::2]
    nodes, start = {}, 0
    for node, size in enumerate(sizes):
        nodes[node] = tuple(sorted(numbers[start : start + size]))
        start += size
    found = worker_cpus([writer(cpu, number=n) for n, cpu in enumerate(cpus)], nodes)

    if found is None:
        assert min(sizes[:2]) <= len(cpus)
        return
    assert len(found.same) == len(found.other) > 0
    assert set(found.same) <= set(nodes[0])
    assert set(found.other) <= set(nodes[1])
    assert not set(found.same) & set(cpus)
    assert sorted((*found.same, *found.other, *found.left_out)) == sorted((*nodes[0], *nodes[1]))
