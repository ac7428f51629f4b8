"""The page cache workload on a real kernel with several NUMA nodes, by the real SSH connection.

The guest is emulated: its figures mean nothing and are marked so. Where pages lie is real.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.on_guest import LOOK, kept, study_text
from tests.support.cli import vnuma
from tests.support.emulated import Guest, has_sudo
from vnuma.engine.access.guest_shell import facts_of, run_on
from vnuma.engine.access.inventory import Inventory
from vnuma.errors import MachineUnreachable, PreflightBlocked
from vnuma.logs import guest_tools
from vnuma.report.model.guest import readers_words
from vnuma.report.model.model import load_run
from vnuma.store.open import open_store
from vnuma.workloads.page_cache import scripts as scripts
from vnuma.workloads.shell import Output, linux_question

pytestmark = pytest.mark.long

Answers = dict[str, Output | MachineUnreachable]

SIZE = 16
FILE_KB = SIZE * 1_000_000 // 1024


def asked_as(guest: Guest, *users: str) -> Answers:
    """The guest's description for each of these users, in one play."""
    if not has_sudo():
        pytest.skip("no sudo for the emulated guest")
    return run_on(users, Inventory(guest.inventory), linux_question("/data"))


@pytest.fixture(scope="module")
def answers(guest: Guest) -> Answers:
    """Sudo asks both for a password, which the inventory has of the first alone."""
    return asked_as(guest, "asked", "forgetful")


def test_every_node_is_seen_and_the_guest_is_known_as_emulated(answers: Answers) -> None:
    """Every node with its CPUs and memory, by a user who becomes root; figures will be marked."""
    machine = facts_of("asked", answers["asked"])

    assert [node.cpus for node in machine.nodes] == [(0, 1), (2,)]
    assert all(node.memory_mb > 200 and node.free_mb > 100 for node in machine.nodes)
    assert machine.distances == {0: (10, 20), 1: (20, 10)}
    assert machine.emulated == "QEMU without KVM"
    assert machine.is_root
    assert machine.may_drop_caches
    assert machine.may_write


def test_a_password_of_sudo_that_is_missing_is_one_sentence(answers: Answers) -> None:
    """Nothing is asked of the guest as an ordinary user."""
    with pytest.raises(PreflightBlocked, match=r"forgetful: Ansible cannot become root there: .*password"):
        facts_of("forgetful", answers["forgetful"])


@pytest.fixture(scope="module")
def others(guest: Guest) -> Answers:
    """One whom sudo asks for no password, and one without sudo."""
    return asked_as(guest, "sudoer", "plain")


def test_sudo_may_need_no_password_or_refuse_the_user(others: Answers) -> None:
    """The first becomes root; the second is refused in a sentence."""
    assert facts_of("sudoer", others["sudoer"]).is_root
    with pytest.raises(PreflightBlocked):
        facts_of("plain", others["plain"])


def test_the_cache_is_dropped_before_the_file_is_read_in(guest: Guest) -> None:
    """FilePages fall by the whole file and grow by it again; a read back takes from memory and moves none."""
    path = scripts.file_name("/data", SIZE)
    guest.ask(scripts.make_file("/data", SIZE))

    near, far, back = (
        _file_pages(guest.ask(script))
        for script in (
            scripts.load(path, 0, 0, [0, 1]),
            scripts.load(path, 0, 1, [0, 1]),
            scripts.read_back(path, 0, 2),
        )
    )
    guest.ask(scripts.remove("/data", [SIZE]))

    held, dropped = near["after"], far["before"]
    assert held[0] - dropped[0] > 0.9 * FILE_KB
    assert far["after"][1] - far["before"][1] > 0.9 * FILE_KB
    assert abs(sum(back["after"].values()) - sum(back["before"].values())) < 0.1 * FILE_KB


def _file_pages(shown: str) -> dict[str, dict[int, int]]:
    """Of each node, before and after."""
    parts = guest_tools.sections(shown)
    return {
        when: {node: row["FilePages"] for node, row in guest_tools.meminfo(parts[when]).items()}
        for when in ("before", "after")
    }


def test_a_study_places_pages_holds_settings_and_puts_everything_back(
    guest: Guest, tmp_path: Path, vnuma_home: Path
) -> None:
    """On the far node, as FilePages show; readers by form are shown; then everything is restored."""
    before = guest.ask(LOOK)
    study = tmp_path / "study.yml"
    study.write_text(study_text(), encoding="utf-8")

    ran = vnuma("run", study, "-i", guest.inventory)

    assert ran.code == 0
    assert guest.ask(LOOK) == before
    stored = kept(vnuma_home)
    assert stored.placed["remote"].grown[1] > 0.9 * FILE_KB
    assert [one["numa_balancing"] for one in stored.kernel] == ["0"]
    assert [one["transparent_hugepages"] for one in stored.kernel] == ["madvise"]
    assert stored.readers == [{"saturated": 2, "unsaturated": 1}]
    read = {one.form: (one.value or 0) * (one.elapsed_ms or 0) for one in stored.samples}
    assert read == {"saturated": pytest.approx(2 * SIZE), "unsaturated": pytest.approx(SIZE)}

    loaded = load_run(open_store(f"sqlite:///{vnuma_home}/vnuma.db"), "latest")
    assert readers_words(loaded, loaded.vms[0]) == "saturated 2, unsaturated 1"


@pytest.fixture
def full_far_node(guest: Guest) -> Iterator[None]:
    """Somebody else's file in memory leaves 16 MB of node 1 free."""
    guest.ask(
        "echo 1 > /proc/sys/vm/drop_caches\n"
        "free=$(awk '$3 == \"MemFree:\" { print $4 }' /sys/devices/system/node/node1/meminfo)\n"
        "numactl --membind=1 dd if=/dev/zero of=/dev/shm/others bs=1M count=$((free / 1024 - 16))"
    )
    yield
    guest.ask("rm /dev/shm/others")


@pytest.mark.usefixtures("full_far_node")
def test_a_pass_whose_pages_lie_elsewhere_counts_for_nothing(guest: Guest, tmp_path: Path) -> None:
    """The kernel puts an interleaved file where there is room: said with the shares, never averaged."""
    study = tmp_path / "study.yml"
    arms = "[{topology: keep, name: spread, workload: {cpu_node: 0, memory_node: interleave}}]"
    study.write_text(study_text(arms=arms, reference="spread", size=80), encoding="utf-8")

    ran = vnuma("run", study, "-i", guest.inventory)

    assert ran.code == 6, ran.text
    (machine,) = json.loads(vnuma("results", "--format", "json").out)["attempts_not_counted"]
    assert {one["reason"] for one in machine["attempts"]} == {"placement_not_proven"}
