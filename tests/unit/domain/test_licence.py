"""Cores that editions use: never more than there are, and both readings where documents disagree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.topology.licence import sql_limit, usable_by_sql, usable_by_windows, windows_sockets
from vnuma.domain.topology.topology import Topology

EDITIONS = ("Developer Edition", "Enterprise Edition (64-bit)", "Standard Edition", "Web", "Express Edition")


@pytest.mark.parametrize(
    ("edition", "major", "shape", "cores", "otherwise"),
    [
        ("Standard Edition (64-bit)", 15, "8x2", 8, 16),
        ("Standard Edition (64-bit)", 15, "16x1", 4, 16),
        ("Standard Edition (64-bit)", 15, "2x16", 24, None),
        ("Standard Edition (64-bit)", 17, "2x16", 32, None),
        ("Standard Developer Edition", 17, "8x2", 8, 16),
        ("Enterprise Edition (64-bit)", 15, "2x16", 20, None),
        ("Enterprise Edition: Core-based Licensing (64-bit)", 15, "2x16", 32, None),
        ("Enterprise Evaluation Edition (64-bit)", 15, "2x16", 32, None),
        ("Developer Edition (64-bit)", 15, "64x1", 64, None),
    ],
)
def test_published_limits(edition: str, major: int, shape: str, cores: int, otherwise: int | None) -> None:
    """As the editions pages state them."""
    usable = usable_by_sql(sql_limit(edition, major), Topology.parse(shape))

    assert (usable.cores, usable.otherwise) == (cores, otherwise)


@given(st.sampled_from(EDITIONS), st.integers(11, 17), st.integers(1, 64), st.integers(1, 32))
def test_no_edition_uses_more_than_there_is(edition: str, major: int, sockets: int, cores: int) -> None:
    """At least one core, at most all; the other reading is never the stricter one."""
    shape = Topology(sockets, cores)
    usable = usable_by_sql(sql_limit(edition, major), shape)

    assert 1 <= usable.cores <= shape.vcpus
    assert usable.otherwise is None or usable.cores < usable.otherwise <= shape.vcpus
    assert usable.otherwise is None or usable.confidence == "low"


@pytest.mark.parametrize(
    ("caption", "sockets"),
    [
        ("Microsoft Windows Server 2022 Standard", 64),
        ("Microsoft Windows Server 2019 Datacenter", 64),
        ("Microsoft Windows 11 Pro", 2),
        ("Microsoft Windows 11 Pro for Workstations", 4),
        ("Microsoft Windows 10 Enterprise", 4),
        ("Microsoft Windows 11 Home", 1),
        ("SUSE Linux Enterprise Server 15", None),
    ],
)
def test_windows_socket_limits(caption: str, sockets: int | None) -> None:
    """By caption; what is not Windows is not known."""
    assert windows_sockets(caption) == sockets


def test_an_unknown_windows_gives_no_number() -> None:
    """Not known is not all."""
    assert usable_by_windows("Solaris 11", Topology(2, 8)) is None
