"""A scan of the same pages from either memory node: its ratio, and its words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnuma.workloads.reporting_streams.workload import NodeScans


@given(st.floats(100, 1e7), st.floats(1, 1e7))
def test_the_ratio_is_the_other_nodes_time_over_the_own_ones(own: float, other: float) -> None:
    """Above 1: another node's scan is slower."""
    scans = NodeScans(0, own, 1, other)

    assert scans.ratio == other / own
    assert f"{own:,.0f} ms from their own memory node 0, {other:,.0f} ms from node 1" in scans.words


@given(st.floats(0, 99.9), st.floats(0, 1e7))
def test_a_scan_too_short_for_whole_milliseconds_is_not_evaluated(own: float, other: float) -> None:
    """No ratio of rounded times, and the reason is said."""
    scans = NodeScans(0, own, 1, other)

    assert scans.ratio is None
    assert scans.words.startswith(f"not evaluated: a scan of {own:.0f} ms is too short")
