"""What guest, Windows and SQL Server see: the paper's arms on every release, editions, unlike hosts."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hosts import host_of
from vnuma.domain.topology.forecast import Forecast, PlannedGuest, forecast, forecast_on
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.topology.release import hardware_version_of
from vnuma.domain.topology.topology import Topology, topologies
from vnuma.domain.topology.vm_location import parse_host
from vnuma.domain.vm.setting import Settings

ARMS = topologies(16)
FOLLOW: Settings = {"numa.vcpu.followcorespersocket": "1"}


def settings_of(shape: Topology, extra: Settings | None = None) -> Settings:
    """The paper's VM in one shape."""
    base: Settings = {"numCPUs": 16, "numCoresPerSocket": shape.cores_per_socket, "memoryMB": 65536}
    return {**base, **(extra or {})}


def seen(release: str, hardware: int, extra: Settings | None = None) -> list[Forecast]:
    """The five arms on the paper's host."""
    host = host_of(release=release)
    return [forecast(settings_of(shape, extra), hardware, host, PlannedGuest()) for shape in ARMS]


@pytest.mark.parametrize(
    ("release", "hardware", "extra", "memory", "cpu"),
    [
        ("6.0.0", 11, {}, [1, 2, 4, 8, 1], [2, 2, 4, 8, 2]),
        ("6.5.0", 13, {}, [1, 1, 1, 1, 1], [2, 2, 2, 2, 2]),
        ("6.7.0", 14, {}, [1, 1, 1, 1, 1], [2, 2, 2, 2, 2]),
        ("7.0.3", 17, {}, [1, 1, 1, 1, 1], [2, 2, 2, 2, 2]),
        ("6.5.0", 13, FOLLOW, [1, 2, 4, 8, 1], [2, 2, 4, 8, 2]),
        ("7.0.3", 17, FOLLOW, [1, 2, 4, 8, 1], [2, 2, 4, 8, 2]),
        ("8.0.2", 20, FOLLOW, [1, 2, 4, 8, 1], [2, 2, 4, 8, 2]),
        ("8.0.2", 20, {}, [1, 1, 1, 1, 1], [2, 2, 2, 2, 2]),
    ],
)
def test_the_papers_arms_on_each_release(
    release: str, hardware: int, extra: Settings, memory: list[int], cpu: list[int]
) -> None:
    """vNUMA nodes are SQL Server's memory nodes; its CPU nodes follow automatic soft-NUMA."""
    arms = seen(release, hardware, extra)

    assert [arm.prediction.vnuma_nodes for arm in arms] == memory
    assert [len(arm.sql_node_sizes) for arm in arms] == cpu


@pytest.mark.parametrize(
    ("release", "hardware", "vcpus", "memory_gb", "allowed"),
    [
        ("6.5", 13, 128, 64, ""),
        ("6.5", 13, 129, 64, "128 vCPUs"),
        ("7.0", 17, 300, 8000, "256 vCPUs and 6128 GB"),
        ("7.0U2", 19, 300, 8000, ""),
        ("9.0", 22, 960, 64, ""),
    ],
)
def test_a_size_that_the_hardware_version_does_not_allow_is_told(
    release: str, hardware: int, vcpus: int, memory_gb: int, allowed: str
) -> None:
    """A new VM has the version of the host's update."""
    host = parse_host(f"16x64/1024@{release}", release)
    size: Settings = {"numCPUs": vcpus, "numCoresPerSocket": 1, "memoryMB": memory_gb * 1024}
    assert hardware_version_of(host.release.version) == hardware

    row = forecast(size, hardware, host, PlannedGuest())

    assert allowed in row.not_allowed
    assert row.impossible == bool(allowed)


@pytest.mark.parametrize(
    ("vcpus", "per_socket", "size", "why"),
    [
        (24, 12, 8, "neither a multiple nor a divisor"),
        (18, 2, 4, "do not divide"),
        (24, 12, 6, ""),
        (24, 0, 12, "automatic"),
    ],
)
def test_a_node_size_with_which_the_vm_does_not_power_on_is_told(
    vcpus: int, per_socket: int, size: int, why: str
) -> None:
    """As T13 finds it; before hardware version 20 the setting does not exist."""
    shape: Settings = {
        "numCPUs": vcpus,
        "numCoresPerSocket": per_socket,
        "autoCoresPerSocket": not per_socket,
        "coresPerNumaNode": size,
        "memoryMB": 65536,
    }
    host = host_of(release="8.0.2")

    row = forecast(shape, 20, host, PlannedGuest())

    assert why in row.stays_off
    assert row.impossible == bool(why)
    assert not forecast(shape, 19, host, PlannedGuest()).stays_off


def test_up_to_6_0_the_other_reading_is_named() -> None:
    """A VM that fits one host node may get one node instead, by Denneman's condition."""
    arms = seen("6.0.0", 11)

    assert [(arm.confidence, arm.prediction.alternatives) for arm in arms] == [
        ("high", ()),
        ("low", (1,)),
        ("low", (1,)),
        ("low", (1,)),
        ("high", ()),
    ]


@pytest.mark.parametrize(("size", "nodes"), [(16, 1), (8, 2), (4, 4), (2, 8), (1, 16)])
def test_esxi_8_gives_the_intended_nodes_by_a_manual_size(size: int, nodes: int) -> None:
    """coresPerNumaNode 1 is the only way to 16 nodes."""
    extra: Settings = {"coresPerNumaNode": size, "autoCoresPerNumaNode": False}
    one = forecast(
        settings_of(Topology(16 // size, size), extra), 20, host_of(release="8.0.2"), PlannedGuest()
    )

    assert one.prediction.vnuma_nodes == nodes


def test_without_soft_numa_cpu_nodes_are_memory_nodes() -> None:
    """Switched off, or before SQL Server 2016. Windows' limits count too, and are never sure."""
    host = host_of(release="7.0.3")
    for guest in (PlannedGuest(soft_numa=False), PlannedGuest(sql_major=12)):
        assert len(forecast(settings_of(Topology(1, 16)), 17, host, guest).sql_node_sizes) == 1
    pro = forecast(settings_of(Topology(4, 4)), 17, host, PlannedGuest(windows="Windows 11 Pro"))
    assert (pro.usable_cores, pro.confidence) == (8, "low")


@pytest.mark.parametrize(("memory_gb", "remote_gb"), [(64, 0), (95, 0), (128, 33)])
def test_memory_beyond_the_node_is_remote(memory_gb: int, remote_gb: int) -> None:
    """One client on a node of 96 GB, rounded up."""
    extra: Settings = {"memoryMB": memory_gb * 1024}
    one = forecast(settings_of(Topology(1, 16), extra), 17, host_of(release="7.0.3"), PlannedGuest())

    assert one.remote_mb is not None
    assert ceil(one.remote_mb / 1024) == remote_gb


def test_hosts_that_give_the_same_are_reported_together_with_the_smallest_share_of_memory() -> None:
    """Two alike, one of which has half the memory, and one with smaller nodes are two rows."""
    texts = ("2x16/256@7.0", "2x16/128@7.0", "4x8/256@7.0")
    vm = settings_of(Topology(1, 16), {"memoryMB": 64 * 1024})

    rows = forecast_on(vm, 17, [parse_host(text, "8.0") for text in texts], PlannedGuest())

    assert [row.hosts for row in rows] == [texts[:2], texts[2:]]
    assert [row.prediction.vnuma_nodes for row in rows] == [1, 2]
    assert rows[0].fullest == 0.5


@pytest.mark.parametrize(
    ("edition", "cores", "online"),
    [
        ("standard", [16, 16, 16, 8, 4], [2, 2, 4, 4, 1]),
        ("express", [4, 4, 4, 2, 1], [1, 1, 1, 1, 1]),
        ("developer", [16, 16, 16, 16, 16], [2, 2, 4, 8, 2]),
    ],
)
def test_nodes_without_a_cpu_in_use_are_offline(edition: str, cores: list[int], online: list[int]) -> None:
    """Where the edition leaves CPUs unused, SQL Server has schedulers on the first nodes only."""
    host = host_of(release="6.0.0")
    arms = [
        forecast(settings_of(shape), 11, host, PlannedGuest(sql_edition=edition, sql_major=15))
        for shape in ARMS
    ]

    assert [arm.usable_cores for arm in arms] == cores
    assert [len(arm.sql_node_sizes) for arm in arms] == [2, 2, 4, 8, 2]
    assert [arm.sql_nodes_online for arm in arms] == online


@given(st.lists(st.integers(1, 64), min_size=1, max_size=8), st.booleans())
def test_sqlos_nodes_hold_every_vcpu(sizes: list[int], soft_numa: bool) -> None:
    """Splitting loses none, and no part is larger than its vNUMA node."""
    parts = Prediction(tuple(sizes), "high", "").cpu_node_sizes(soft_numa=soft_numa)

    assert sum(parts) == sum(sizes)
    assert min(parts) >= 1
    assert max(parts) <= max(sizes)


@pytest.mark.parametrize(("memory_gb", "told"), [(40, False), (60, True), (120, True)])
def test_an_estimated_node_memory_is_said_where_it_decides(memory_gb: int, told: bool) -> None:
    """On 96 GB a node: 40 GB fit whatever the estimate hides; 60 GB, and what is remote, depend on it."""
    host = replace(host_of(release="6.7.0"), node_memory_estimated=True)
    settings = {**settings_of(Topology(1, 16)), "memoryMB": memory_gb * 1024}
    hosts = (host, replace(host, node_memory_estimated=False))
    rows = [forecast(settings, 14, one, PlannedGuest()) for one in hosts]

    assert ["estimated" in row.memory_doubt + row.remote for row in rows] == [told, False]


@pytest.mark.parametrize(("cores", "nodes"), [(8, 1), (9, 1), (10, 2), (16, 2), (17, 3), (33, 5)])
def test_automatic_soft_numa_makes_nodes_of_five_to_nine_cores(cores: int, nodes: int) -> None:
    """Above eight cores, as even as possible: ten are two nodes of five, nine stay one."""
    assert Prediction((cores,), "high", "").cpu_nodes(soft_numa=True) == nodes
