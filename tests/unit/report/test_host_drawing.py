"""The host's nodes and the CPUs that arms were pinned to, drawn and in words."""

from __future__ import annotations

from vnuma.domain.vm.facts import NumaNode
from vnuma.report.charts.topology_drawing import HostMap, host_figures

NODES = (NumaNode(0, tuple(range(32)), 98_304), NumaNode(1, tuple(range(32, 64)), 98_304))
EVEN = tuple(range(0, 32, 2))


def test_pinned_cpus_are_filled_and_counted() -> None:
    """16 of node 0's logical CPUs are filled; the words say how many lie where, for which arms."""
    (figure,) = host_figures(HostMap("esx01", NODES, ((EVEN, ("1x16", "2x8")),)), key="h")

    assert figure.svg.count('class="pinned"') == 16
    assert figure.svg.count('class="cpu"') == 48
    assert "1x16 and 2x8 pinned to 16 logical CPUs (filled): 16 on node 0." in figure.words
    assert "host node 1: 32 CPUs, 96 GB" in figure.svg


def test_arms_that_were_pinned_otherwise_get_a_drawing_of_their_own() -> None:
    """Free arms and pinned ones are not mixed."""
    found = host_figures(HostMap("esx01", NODES, ((EVEN, ("1x16",)), ((), ("free",)))), key="h")

    assert [figure.title for figure in found] == ["Host esx01, arms 1x16", "Host esx01, arms free"]
    assert "without CPU affinity: ESXi placed the VM" in found[1].words
    assert 'class="pinned"' not in found[1].svg


def test_an_affinity_across_nodes_says_so() -> None:
    """Remote memory is then possible."""
    (figure,) = host_figures(HostMap("esx01", NODES, (((30, 31, 32), ("x",)),)), key="h")

    assert "2 on node 0 and 1 on node 1" in figure.words


def test_without_a_boot_the_place_is_not_known() -> None:
    """A planned run shows the host alone."""
    (figure,) = host_figures(HostMap("esx01", NODES, ()), key="h")

    assert "where the VM ran is not known" in figure.words


def test_names_cannot_break_the_drawing() -> None:
    """A host's name is text."""
    (figure,) = host_figures(HostMap("<b>&", NODES, ()), key="h")

    assert "<b>" not in figure.svg
