"""The drawings of what was asked for, predicted and seen, and of the host's nodes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.topology.topology import Topology, topologies
from vnuma.domain.vm.facts import NumaNode
from vnuma.report.charts.topology_drawing import HostMap, drawing, host_figures
from vnuma.report.model.arm_topologies import ArmTopology

ARM = ArmTopology(
    arm="2x8",
    intended=Topology(2, 8),
    shape=Topology(2, 8),
    vcpus=16,
    read_back=("2x8",),
    predicted=(8, 8),
    alternatives=(1,),
    confidence="low",
    because="a node per socket",
    seen=((2, 6),),
    seen_sizes=(8, 8),
    sql_nodes=((2, 6),),
    sql_sizes=(8, 8),
    logged=(("2, 2 parts on the host", 6),),
    logged_sizes=(8, 8),
    physical_sizes=(8, 8),
    counted=6,
    planned=6,
    not_evaluated=(),
    notes=(),
    pages=(1.0,),
)


def boxes(svg: str, kind: str) -> list[tuple[float, float]]:
    """Left edge and width of the boxes of one kind."""
    found = re.findall(rf'<rect class="{kind}" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', svg)
    return [(float(x), float(width)) for x, width in found]


def test_each_row_has_a_box_for_each_part() -> None:
    """Two sockets with sixteen vCPUs, two nodes predicted, logged and seen, two SQL nodes, two clients."""
    svg = str(drawing(ARM, key="k").svg)
    kinds = ("socket", "vcpu", "predicted", "logged", "seen", "sql", "physical")

    assert [len(boxes(svg, kind)) for kind in kinds] == [2, 16, 2, 2, 2, 2, 2]


def test_a_guest_without_sql_server_has_no_row_for_its_nodes() -> None:
    """What its shell showed is written; each row is at its own height."""
    shown = drawing(replace(ARM, seen_sizes=(), sql_sizes=()), key="k")
    svg = str(shown.svg)
    texts = re.findall(r'<text[^>]* y="(\d+)">([^<]+)</text>', svg)

    assert [text for _, text in texts if text.startswith("SQL")] == []
    assert dict(map(reversed, texts))["2 nodes"] == dict(map(reversed, texts))["guest saw"]
    (top,) = set(re.findall(r'<rect class="physical" x="[\d.]+" y="([\d.]+)"', svg))
    assert int(dict(map(reversed, texts))["on the host"]) - float(top) == 13
    assert "SQL" not in str(shown)


def test_uneven_nodes_are_drawn_to_scale() -> None:
    """A node of 12 vCPUs is about three times as wide as one of 4."""
    svg = str(drawing(replace(ARM, seen_sizes=(12, 4)), key="k").svg)
    (_, wide), (_, narrow) = boxes(svg, "seen")

    assert wide / narrow == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize(
    ("gone", "kinds"),
    [
        ({"seen": (), "seen_sizes": (), "sql_nodes": (), "sql_sizes": ()}, ("seen", "sql")),
        ({"logged": (), "logged_sizes": (), "physical_sizes": ()}, ("logged", "physical")),
    ],
    ids=["without a boot", "without a log"],
)
def test_what_is_not_known_is_written_not_drawn(gone: dict[str, Any], kinds: tuple[str, str]) -> None:
    """No box is drawn, and the picture says `not known` or `not evaluated`."""
    svg = str(drawing(replace(ARM, **gone), key="k").svg)

    assert [boxes(svg, kind) for kind in kinds] == [[], []]
    assert len(re.findall(r"not (?:known|evaluated)</text>", svg)) == 2


@given(st.sampled_from([1, 2, 6, 12, 16, 40, 128, 768]).flatmap(lambda n: st.sampled_from(topologies(n))))
def test_every_topology_stays_inside_its_picture(topology: Topology) -> None:
    """From 1 to 768 vCPUs no box leaves the drawing."""
    sizes = (topology.cores_per_socket,) * topology.sockets
    svg = str(
        drawing(
            replace(ARM, shape=topology, vcpus=topology.vcpus, predicted=sizes, seen_sizes=sizes), key="k"
        ).svg
    )
    width = float(re.findall(r'viewBox="0 0 (\d+)', svg)[0])

    for kind in ("socket", "vcpu", "predicted", "seen"):
        assert all(0 <= x <= width + 1 - wide for x, wide in boxes(svg, kind))


@pytest.mark.parametrize(
    ("logged", "words"),
    [
        ((("2, 2 parts on the host", 6),), "2, 2 parts on the host"),
        (
            (("2, 1 part on the host", 2), ("2, 2 parts on the host", 4)),
            "2, 1 part on the host (2 boots); 2, 2 parts on the host (4 boots)",
        ),
        ((("2, 2 parts on the host", 4),), "2, 2 parts on the host; 2 of 6 not evaluated"),
        ((), "not evaluated"),
    ],
)
def test_logs_are_reported_with_the_boots_that_had_one(
    logged: tuple[tuple[str, int], ...], words: str
) -> None:
    """A boot without a log of its own is counted as not evaluated."""
    assert replace(ARM, logged=logged).log_words == words


def test_boots_that_saw_different_nodes_are_counted_apart() -> None:
    """When boots of an arm differ, each number of nodes is shown with its boots."""
    assert replace(ARM, seen=((1, 2), (2, 4))).seen_words == "1 (2 boots), 2 (4 boots)"


NODES = (NumaNode(0, tuple(range(32)), 98_304), NumaNode(1, tuple(range(32, 64)), 98_304))
EVEN = tuple(range(0, 32, 2))


@pytest.mark.parametrize(
    ("groups", "titles", "pinned", "said"),
    [
        (
            ((EVEN, ("1x16", "2x8")),),
            ["Host esx01, arms 1x16 and 2x8"],
            16,
            "1x16 and 2x8 pinned to 16 logical CPUs (filled): 16 on node 0.",
        ),
        # Free arms and pinned ones are not mixed.
        (
            ((EVEN, ("1x16",)), ((), ("free",))),
            ["Host esx01, arms 1x16", "Host esx01, arms free"],
            16,
            "without CPU affinity: ESXi placed the VM",
        ),
        (
            (((30, 31, 32), ("x",)),),
            ["Host esx01, arms x"],
            3,
            "2 on node 0 and 1 on node 1",
        ),  # memory may be remote
        ((), ["Host esx01"], 0, "where the VM ran is not known"),  # a planned run
    ],
    ids=["pinned", "pinned and free", "across nodes", "no boot"],
)
def test_pinned_cpus_are_filled_and_counted(
    groups: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...], titles: list[str], pinned: int, said: str
) -> None:
    """All 64 logical CPUs are drawn; the words say how many lie where, for which arms."""
    found = host_figures(HostMap("esx01", NODES, groups), key="h")

    assert [figure.title for figure in found] == titles
    assert sum(figure.svg.count('class="pinned"') for figure in found) == pinned
    assert {len(re.findall('class="(?:cpu|pinned)"', figure.svg)) for figure in found} == {64}
    assert said in found[-1].words


def test_names_are_escaped() -> None:
    """An arm's and a host's name is text, whatever it holds."""
    figures = (drawing(replace(ARM, arm="<b>"), key="k"), *host_figures(HostMap("<b>&", NODES, ()), key="h"))

    assert [figure for figure in figures if "<b>" in figure.svg] == []
