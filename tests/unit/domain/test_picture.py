"""The picture of a topology shows what was predicted, one square a CPU."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from vnuma.domain.topology.forecast import forecast, planned_guest
from vnuma.domain.topology.picture import STYLE, topology_svg
from vnuma.domain.topology.vm_location import parse_host

HOST = parse_host("2x20/384", "8.0")


def drawn(
    vcpus: int, per_socket: int, memory_gb: int = 256, edition: str = "developer", name: str = ""
) -> tuple[Counter[str], str]:
    """The number of shapes of each kind, and all text."""
    settings = {"numCPUs": vcpus, "numCoresPerSocket": per_socket, "memoryMB": memory_gb * 1024}
    host = replace(HOST, name=name or HOST.name)
    seen = forecast(settings, 19, host, planned_guest(edition, 2022, ""))
    page = ET.fromstring(topology_svg(seen, host, memory_gb * 1024))
    return Counter(part.get("class", "") for part in page), " ".join(page.itertext())


@pytest.mark.parametrize(
    ("vcpus", "per_socket", "memory_gb", "edition", "expected"),
    [
        (16, 8, 256, "developer", {"n0": 16 * 4, "n1": 0, "free": 24, "off": 0, "over": 0}),
        (30, 15, 256, "developer", {"n0": 15 * 4, "n1": 15 * 4, "free": 10, "off": 0, "over": 0}),
        (30, 15, 256, "standard", {"n0": 15 * 4, "n1": 15 * 3 + 9, "free": 10, "off": 6, "over": 0}),
        (16, 16, 512, "developer", {"n0": 16 * 4, "n1": 0, "free": 24, "off": 0, "over": 1}),
        (64, 32, 256, "developer", {"n0": 16 * 4, "n2": 4 + 16 * 3, "free": 0, "off": 0, "over": 0}),
    ],
    ids=["one node", "two nodes", "unused by the edition", "remote memory", "too wide"],
)
def test_a_square_for_each_cpu(
    vcpus: int, per_socket: int, memory_gb: int, edition: str, expected: dict[str, int]
) -> None:
    """A vCPU has one on the host, in its socket, its vNUMA node and its SQL node, in its node's colour.

    A free core, an unused vCPU and memory beyond a node are marked.
    """
    kinds, _ = drawn(vcpus, per_socket, memory_gb, edition)

    assert {kind: kinds[kind] for kind in expected} == expected


def test_a_hostile_name_is_text() -> None:
    """It neither ends an element nor breaks the XML."""
    kinds, text = drawn(16, 8, name="</svg><script>alert(1)</script>\x00&")

    assert "</svg><script>alert(1)</script>" in text
    assert kinds["n0"] == 64
    assert STYLE in text
