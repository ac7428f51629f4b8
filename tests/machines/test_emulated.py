"""The page cache workload on a real kernel with several NUMA nodes, by the real SSH connection.

The guest is emulated: its figures mean nothing and are marked so. Where pages lie is real.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machines.conftest import skip_but_in_ci
from tests.support.cli import vnuma
from tests.support.emulated import Guest, has_sudo
from vnuma.engine.linux.plan import facts_of
from vnuma.engine.linux.shell import Output, run_on
from vnuma.errors import MachineUnreachable, PreflightBlocked
from vnuma.store import facts, runs, samples
from vnuma.store.open import open_store
from vnuma.workloads.machine_question import machine_question

Answers = dict[str, Output | MachineUnreachable]

STUDY = """
name: emulated
vm: {host}
reference: remote
arms:
  - {{topology: keep, name: remote, workload: {{cpu_node: 0, memory_node: 1}}}}
  - {{topology: keep, name: depleted, workload: {{cpu_node: 0, memory_node: depleted}}}}
design: {{blocks: 1, a_a: false, sentinel: false, warmups: 0, iterations: 1}}
workload:
  name: page_cache
  sizes: [100]
  forms: [saturated, unsaturated]
  folder: /data
  numa_balancing: "off"
  transparent_hugepages: never
"""
LOOK = (
    "cat /proc/sys/kernel/numa_balancing /sys/kernel/mm/transparent_hugepage/enabled; ls -d /data/vnuma-* "
    "/dev/shm/vnuma-* 2>/dev/null; true"
)


@pytest.fixture(scope="module")
def answers(guest: Guest) -> Answers:
    """What the guest says of itself to each of its users, in one play."""
    return run_on(
        ["emulated", "sudoer", "asked", "forgetful", "plain"], guest.inventory, machine_question("/data")
    )


def test_every_node_is_seen_and_the_guest_is_known_as_emulated(answers: Answers) -> None:
    """Every node with its CPU and memory; figures will be marked."""
    machine = facts_of("emulated", answers["emulated"])

    assert [node.cpus for node in machine.nodes] == [(0,), (1,)]
    assert all(node.memory_mb > 200 and node.free_mb > 100 for node in machine.nodes)
    assert machine.distances == {0: (10, 20), 1: (20, 10)}
    assert machine.emulated == "QEMU without KVM"
    assert machine.is_root
    assert machine.may_drop_caches
    assert machine.may_write


@pytest.mark.parametrize(("user", "words"), [("sudoer", None), ("asked", None), ("forgetful", "password")])
def test_an_ordinary_user_becomes_root_by_sudo(answers: Answers, user: str, words: str | None) -> None:
    """Without a password, or with the inventory's; one that is missing is one sentence."""
    _need_sudo()
    if words is None:
        assert facts_of(user, answers[user]).is_root
        return
    with pytest.raises(
        PreflightBlocked, match=f"{user}: Ansible cannot become root there: .*{words}"
    ) as told:
        facts_of(user, answers[user])
    assert "ansible_become_password" in str(told.value.fix)


def test_a_user_without_sudo_is_refused_in_a_sentence(answers: Answers) -> None:
    """sudo's own words stand in it."""
    _need_sudo()
    with pytest.raises(PreflightBlocked, match="plain: Ansible cannot become root there"):
        facts_of("plain", answers["plain"])


def test_a_study_places_pages_holds_settings_and_puts_everything_back(
    guest: Guest, tmp_path: Path, vnuma_home: Path
) -> None:
    """On the far node, and off a depleted one, as FilePages show; then the guest is as it was before."""
    before = guest.ask(LOOK)
    study = tmp_path / "study.yml"
    study.write_text(STUDY.format(host="sudoer" if has_sudo() else "emulated"), encoding="utf-8")

    ran = vnuma("run", study, "-i", guest.inventory)

    assert "2 of 2 cells valid" in ran.text, ran.text
    assert ran.code == 0
    assert "2 of 2 settings read back equal, files removed" in ran.text
    assert "EMULATED (QEMU without KVM)" in vnuma("results", "emulated.1").text
    stored = _stored(vnuma_home)
    far, spared = (stored.grown[place] for place in (1, "depleted"))
    assert far["1"] > 0.9 * 100_000_000 / 1024
    assert spared["1"] > spared["0"]
    assert stored.kernel == [{"numa_balancing": "0", "transparent_hugepages": "never"}] * 2
    assert [form for form, _ in stored.read] == ["saturated", "unsaturated"] * 2
    assert all(value and value > 0 for _, value in stored.read)
    assert guest.ask(LOOK) == before


@dataclass(frozen=True)
class Stored:
    """What a run kept: growth of FilePages by wanted place, the kernel's settings, forms and GB/s."""

    grown: dict[object, dict[str, int]]
    kernel: list[dict[str, object]]
    read: list[tuple[str, float | None]]


def _stored(home: Path) -> Stored:
    with open_store(f"sqlite:///{home}/vnuma.db").read() as connection:
        run = runs.get_run(connection, "latest")
        known = facts.facts_of_run(connection, run.id, "workload")
        read = [(one.sample.form, one.sample.value) for one in samples.iter_samples(connection, run.id)]
    documents = [(fact.key, fact.value) for fact in known if isinstance(fact.value, dict)]
    placed = [value for key, value in documents if key.startswith("placed")]
    held = ("numa_balancing", "transparent_hugepages")
    return Stored(
        {one["wanted"]: one["grown_kb"] for one in placed},
        [{name: value[name] for name in held} for key, value in documents if key == "kernel"],
        read,
    )


def _need_sudo() -> None:
    if not has_sudo():
        skip_but_in_ci("no sudo for the emulated guest")
