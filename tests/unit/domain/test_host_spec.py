"""Hosts described in a few characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.topology.vm_location import parse_host
from vnuma.domain.vm.facts import Release


@given(st.integers(1, 16), st.integers(1, 128), st.integers(1, 4096), st.integers(1, 4))
def test_what_is_written_is_what_is_read(nodes: int, cores: int, memory: int, threads: int) -> None:
    """Nodes, cores and memory of a node, release; every CPU once."""
    host = parse_host(f"{nodes}x{cores}/{memory}@7.0", "8.0", threads)

    assert (len(host.numa_nodes), host.cores_per_node, host.threads_per_core) == (nodes, cores, threads)
    assert (host.node_memory_mb, host.release.key) == (memory * 1024, (7, 0))
    assert sorted(cpu for node in host.numa_nodes for cpu in node.cpus) == list(
        range(nodes * cores * threads)
    )


def test_the_release_may_be_common_and_memory_unknown() -> None:
    """2x16 alone."""
    host = parse_host("2x16", "6.5")

    assert (host.release.key, host.node_memory_mb) == ((6, 5), 0)


@pytest.mark.parametrize("text", ["", "16", "2x", "0x16", "2x16/", "2x16@", "2x16@8.0U", "2*16", "2x16/96GB"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    """The sentence shows how."""
    with pytest.raises(ValueError, match=r"2x16/96@7\.0"):
        parse_host(text, "8.0")


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("8.0", "8.0"),
        ("8.0.3", "8.0.3"),
        ("8.0U3", "8.0.3"),
        ("8.0 u3b", "8.0.3"),
        ("7.0 Update 3", "7.0.3"),
        ("6.7U3", "6.7"),
    ],
)
def test_an_update_may_be_written_as_vmware_does(release: str, version: str) -> None:
    """From 7.0 on it is the third number; 6.7 Update 3 calls itself 6.7.0."""
    assert parse_host("2x16", release).release.version == version
    assert parse_host(f"2x16@{release}", "6.5").release.version == version


@pytest.mark.parametrize(
    ("text", "version", "build"),
    [
        ("8", "8.0", ""),
        ("VMware ESXi 8.0.3", "8.0.3", ""),
        ("ESXi7.0", "7.0", ""),
        ("8.0.3, 24022510", "8.0.3", "24022510"),
        ("VMware ESXi, 8.0.3, 24022510", "8.0.3", "24022510"),
        ("VMware ESXi 8.0.2 build-22380479", "8.0.2", "22380479"),
    ],
)
def test_a_common_release_may_have_its_product_and_build_or_no_minor_number(
    text: str, version: str, build: str
) -> None:
    """As a table's column has it, copied from vCenter or RVTools."""
    assert parse_host("2x16", text).release == Release(version, build)


def test_a_release_that_is_none_is_refused_with_an_example() -> None:
    """`--esxi`, or a table's column, has a word in it."""
    with pytest.raises(ValueError, match=r"'latest' is not an ESXi release.*8\.0U3"):
        parse_host("2x16", "latest")
