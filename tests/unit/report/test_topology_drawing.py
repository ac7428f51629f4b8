"""The drawing of what was asked for, predicted and seen."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.topology.topology import Topology, topologies
from vnuma.report.charts.topology_drawing import drawing
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


def test_uneven_nodes_are_drawn_to_scale() -> None:
    """A node of 12 vCPUs is about three times as wide as one of 4."""
    svg = str(drawing(replace(ARM, seen_sizes=(12, 4)), key="k").svg)
    (_, wide), (_, narrow) = boxes(svg, "seen")

    assert wide / narrow == pytest.approx(3, rel=0.05)


def test_what_is_not_known_is_written_not_drawn() -> None:
    """Without a boot there is no box for what the guest saw."""
    figure = drawing(replace(ARM, seen=(), seen_sizes=(), sql_nodes=(), sql_sizes=()), key="k")

    assert boxes(str(figure.svg), "seen") == []
    assert str(figure.svg).count("not known</text>") == 2
    assert "seen by the guest not known" in figure.words


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


def test_a_log_that_could_not_be_had_is_not_drawn() -> None:
    """Neither its nodes nor the host's."""
    svg = str(drawing(replace(ARM, logged=(), logged_sizes=(), physical_sizes=()), key="k").svg)

    assert boxes(svg, "logged") == boxes(svg, "physical") == []
    assert svg.count("not evaluated</text>") == 2


def test_boots_that_saw_different_nodes_are_counted_apart() -> None:
    """When boots of an arm differ, each number of nodes is shown with its boots."""
    assert replace(ARM, seen=((1, 2), (2, 4))).seen_words == "1 (2 boots), 2 (4 boots)"


def test_names_are_escaped() -> None:
    """An arm's name is text, whatever it holds."""
    assert "<b>" not in str(drawing(replace(ARM, arm="<b>"), key="k").svg)
