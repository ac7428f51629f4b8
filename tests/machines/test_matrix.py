"""The whole matrix of CPU node and memory node on emulated guests of 2 and 4 NUMA nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machines.on_guest import LOOK, Placement, kept, study_text
from tests.support.cli import vnuma
from tests.support.emulated import Guest, has_sudo

SIZE = 100


@pytest.fixture(params=[("guest", 2), ("wide_guest", 4)], ids=["2 nodes", "4 nodes"])
def guest_of_nodes(request: pytest.FixtureRequest) -> tuple[Guest, int]:
    """A guest, and how many NUMA nodes it has."""
    name, nodes = request.param
    return request.getfixturevalue(name), nodes


@pytest.mark.long
def test_pages_lie_where_each_cell_of_the_matrix_wants_them(
    guest_of_nodes: tuple[Guest, int], tmp_path: Path, vnuma_home: Path
) -> None:
    """Every CPU node with every memory node, interleaved and depleted; marked as emulated everywhere."""
    guest, nodes = guest_of_nodes
    before = guest.ask(LOOK)
    places = [(cpu, memory) for cpu in range(nodes) for memory in range(nodes)]
    arms = [_arm(*place) for place in [*places, (0, "interleave"), (nodes - 1, "depleted")]]
    study = tmp_path / "study.yml"
    host = "sudoer" if has_sudo() else "emulated"
    text = study_text(host=host, arms=f"[{', '.join(arms)}]", reference="on0-0", size=SIZE, forms="[single]")
    study.write_text(text, encoding="utf-8")

    ran = vnuma("run", study, "-i", guest.inventory, timeout_s=1500)

    assert ran.code == 0, ran.text
    assert guest.ask(LOOK) == before
    stored = kept(vnuma_home, SIZE)
    for cpu, memory in places:
        assert stored.placed[f"on{cpu}-{memory}"].shares[memory] > 0.9
    assert _evenly_over(nodes, stored.placed["on0-interleave"])
    assert stored.placed[f"on{nodes - 1}-depleted"].shares[nodes - 1] < 0.5
    assert all(one.value and one.value > 0 for one in stored.samples)
    _marked_everywhere(study, guest, tmp_path)


def _arm(cpu: int, memory: object) -> str:
    work = f"{{cpu_node: {cpu}, memory_node: {memory}}}"
    return f"{{topology: keep, name: on{cpu}-{memory}, workload: {work}}}"


def _evenly_over(nodes: int, placed: Placement) -> bool:
    return all(placed.shares[node] == pytest.approx(1 / nodes, abs=0.05) for node in range(nodes))


def _marked_everywhere(study: Path, guest: Guest, folder: Path) -> None:
    """Wherever a figure can be copied, its origin is shown with it."""
    page, board, archive = folder / "page.html", folder / "board.html", folder / "emulated.zip"
    banner = "EMULATED (QEMU without KVM): not measured on hardware"
    planned = vnuma("plan", study, "-i", guest.inventory, "--document", board)
    vnuma("report", "-o", page)
    exported = vnuma("export", "emulated.1", "-o", archive)

    assert banner in planned.out
    assert banner in vnuma("results").out
    assert banner in exported.text
    assert "(emulated)" in vnuma("status").out
    assert '"scenario": "emulated: QEMU without KVM"' in vnuma("results", "--format", "json").out
    assert "emulated: QEMU without KVM" in vnuma("results", "--format", "csv").out
    for written in (page, board):
        text = written.read_text(encoding="utf-8")
        assert banner in text
        assert "<title>EMULATED: " in text
