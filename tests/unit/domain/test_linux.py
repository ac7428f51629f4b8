"""A machine's answer is parsed into facts; an emulator is distinguished from hardware."""

from __future__ import annotations

import pytest

from vnuma.domain.vm.linux import linux_facts, same_uuid
from vnuma.words.provenance import banner, emulated_by

ANSWER = """Last login: never
@@ hostname
emulated
@@ kernel
6.1.0-56-cloud-amd64
@@ machine-id
@@ uid
0
@@ uuid
@@ vendor
QEMU
@@ cpu
{cpu}
@@ virt
@@ clocks
{clocks}
@@ numactl
/usr/bin/numactl
@@ dd
1+0 records in
1+0 records out
1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.001 s, 1.0 GB/s
@@ meminfo
Node 0 MemTotal:         256000 kB
Node 0 MemFree:          235520 kB
Node 0 FilePages:         12288 kB
Node 0 Shmem:              2048 kB
Node 1 MemTotal:         223232 kB
Node 1 MemFree:          202752 kB
@@ cpulists
0 0
1
@@ distances
0 10 20
1 20 10
@@ numa_balancing
1
@@ thp
always [madvise] never
@@ spread_page
@@ memory_limit
max
@@ mems_allowed
0-1
@@ file_system
ext2/ext3
@@ disk_kb
226000
@@ folder
writable
@@ drop_caches
@@ shm_kb
102400
"""


def test_an_answer_is_read() -> None:
    """Nodes with and without CPUs, kernel settings, limits: as the machine shows them."""
    facts = linux_facts(ANSWER.format(cpu="QEMU TCG CPU version 2.5+", clocks="tsc hpet acpi_pm"))

    assert [(node.id, node.cpus, node.memory_mb) for node in facts.nodes] == [(0, (0,), 250), (1, (), 218)]
    assert facts.identity == "emulated"
    assert (facts.numa_balancing, facts.transparent_hugepages) == ("1", "madvise")
    assert facts.memory_limit_mb is None
    assert facts.allowed_nodes == (0, 1)
    assert facts.is_root
    assert facts.numactl
    assert facts.dd_times
    assert (facts.nodes[0].free_mb, facts.nodes[0].cached_mb) == (230, 10)
    assert facts.may_write
    assert not facts.may_drop_caches
    assert facts.free_shm_mb == 100


@pytest.mark.parametrize(
    ("cpu", "clocks", "emulated"),
    [
        ("QEMU TCG CPU version 2.5+", "tsc hpet acpi_pm", True),
        ("QEMU Virtual CPU version 2.5+", "tsc hpet acpi_pm", True),
        ("QEMU Virtual CPU version 2.5+", "kvm-clock tsc acpi_pm", False),
    ],
    ids=["the CPU's name", "no kvm-clock", "KVM"],
)
def test_an_emulator_is_distinguished_from_a_virtual_machine(cpu: str, clocks: str, emulated: bool) -> None:
    """QEMU without KVM is an emulator; the same QEMU with KVM is hardware at work."""
    assert bool(linux_facts(ANSWER.format(cpu=cpu, clocks=clocks)).emulated) is emulated


def test_a_machine_of_the_lab_says_which_scenario_plays_it() -> None:
    """Its maker's name says so, and figures of it are marked simulated."""
    plain = ANSWER.format(cpu="X5570", clocks="tsc")
    played = plain.replace("QEMU\n", "simulated by vnuma-lab, scenario closson2009\n")

    facts = linux_facts(played)

    assert (facts.simulated, facts.provenance) == ("closson2009", "closson2009")


def test_silence_is_no_answer() -> None:
    """A machine that reports no node is refused, not treated as one without nodes."""
    with pytest.raises(ValueError, match="meminfo"):
        linux_facts("sudo: a password is required")


def test_figures_of_an_emulator_say_so() -> None:
    """Emulated, simulated and real figures have three different first lines."""
    assert banner(emulated_by("QEMU without KVM")) == "EMULATED (QEMU without KVM): not measured on hardware"
    assert banner("paper") == "SIMULATED (lab, scenario paper): not measured on hardware"
    assert banner(None) == ""


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("420D2CF8-0A1B-2C3D-4E5F-60718293A4B5", True),
        ("f82c0d42-1b0a-3d2c-4e5f-60718293a4b5", True),
        ("420d2cf8-0a1b-2c3d-4e5f-60718293a4b6", False),
        ("", False),
    ],
    ids=["as written", "little-endian", "another", "none"],
)
def test_a_guest_shows_its_vms_uuid_in_either_byte_order(shown: str, same: bool) -> None:
    """Firmware before and after SMBIOS 2.6 differs; no UUID proves nothing."""
    assert same_uuid(shown, "420d2cf8-0a1b-2c3d-4e5f-60718293a4b5") is same


def test_an_arms_nodes_share_the_guests_memory() -> None:
    """What a workload needs is held against the arm's predicted nodes, not against the present ones."""
    seen = linux_facts(ANSWER.format(cpu="x", clocks="tsc")).with_nodes((8, 8), 65536)

    assert [(node.id, node.cpus[0], len(node.cpus), node.free_mb) for node in seen.nodes] == [
        (0, 0, 8, 32768),
        (1, 8, 8, 32768),
    ]
    assert seen.allowed_nodes == (0, 1)
