"""Changing a VM: what vSphere accepts and refuses, and how each is reported."""

from __future__ import annotations

import pytest

from tests.vsphere.support import LabFactory, Login, change, vm
from vnuma.domain.vm.change import Change, Edit, change_back, change_to
from vnuma.domain.vm.setting import Value
from vnuma.engine.lease.baseline import conflicts
from vnuma.errors import LeaseLost, PrivilegeMissing, ReadBackDiffers, ReconfigureRefused
from vnuma.vsphere.apply import ChangedMeanwhile, reconfigure
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.read import find_vm, read_vm

OFF = vm(power="off")


@pytest.fixture
def session(lab: LabFactory, login: Login) -> Session:
    """A session at a lab whose VM is off."""
    return login(lab(vms=[OFF]))


@pytest.mark.parametrize(
    "desired",
    [
        {"numCPUs": 8, "numCoresPerSocket": 8},
        {"numCPUs": 8},
        {"numCoresPerSocket": 2},
        {"numCoresPerSocket": 1, "cpuAffinity": tuple(range(0, 32, 2))},
        {"memoryMB": 32768},
        {"memoryReservationLockedToMax": True},
        {"memoryReservation": 2048, "memoryShares": "high"},
        {"memoryShares": 1234, "cpuShares": "low"},
        {"cpuReservation": 2300, "cpuLimit": 20000},
        {"cpuHotAddEnabled": True, "memoryHotAddEnabled": True},
        {"latencySensitivity": "high"},
        {"numa__vcpu__maxPerVirtualNode": "4", "vmx__reboot__PowerCycle": True},
    ],
    ids=lambda desired: "+".join(desired),
)
def test_a_change_is_made_read_back_and_restored(
    session: Session, ref: VmRef, desired: dict[str, Value]
) -> None:
    """Every kind of setting reads back as asked, and the way back leads to the very baseline."""
    before = read_vm(session, ref)
    asked = change(session, ref, **desired)
    assert asked

    after = reconfigure(session, ref, asked)
    assert {edit.setting: after.settings.get(edit.setting) for edit in asked} != {
        edit.setting: edit.before for edit in asked
    }

    reconfigure(session, ref, change_back(after.settings, before.settings))
    assert read_vm(session, ref).settings == before.settings


# A property that the server leaves out until a reconfigure, and what a study then sets.
ABSENT: dict[str, dict[str, Value]] = {
    "hardware.numCoresPerSocket": {"numCoresPerSocket": 8},
    "hardware.autoCoresPerSocket": {"numCoresPerSocket": 8},
    "numaInfo": {"coresPerNumaNode": 8},
    "numaInfo.coresPerNumaNode": {"coresPerNumaNode": 8},
    "numaInfo.autoCoresPerNumaNode": {"coresPerNumaNode": 8},
    "numaInfo.vnumaOnCpuHotaddExposed": {"exposeVnumaOnCpuHotadd": True},
    "cpuHotAddEnabled": {"cpuHotAddEnabled": True},
    "memoryHotAddEnabled": {"memoryHotAddEnabled": True},
    "memoryReservationLockedToMax": {"memoryReservationLockedToMax": True},
    "rebootPowerOff": {"rebootPowerOff": True},
    "latencySensitivity": {"latencySensitivity": "high"},
    "memoryAllocation": {"memoryReservation": 1024},
    "memoryAllocation.reservation": {"memoryReservation": 1024},
    "memoryAllocation.limit": {"memoryLimit": 65536},
    "memoryAllocation.shares": {"memoryShares": "high"},
    "cpuAllocation": {"cpuReservation": 1000},
    "cpuAllocation.reservation": {"cpuReservation": 1000},
    "cpuAllocation.limit": {"cpuLimit": 20000},
    "cpuAllocation.shares": {"cpuShares": "low"},
}


def test_a_field_absent_until_the_first_change_is_nobodys_change(lab: LabFactory, login: Login) -> None:
    """Each optional property in turn: the change, its read-back, the restore and what others changed."""
    vms = [
        vm(f"vm{number}", power="off", cores_per_socket=1, absent=[field])
        for number, field in enumerate(ABSENT)
    ]
    session = login(lab({"esxi": {"version": "8.0.3"}, "vms": vms}))
    for number, (field, desired) in enumerate(ABSENT.items()):
        ref = find_vm(session, f"vm{number}")
        before = read_vm(session, ref)
        after = reconfigure(session, ref, change_to(before.settings, desired))
        wrote = {edit.setting: {edit.after} for edit in change_to(before.settings, desired)}
        assert conflicts(before.settings, wrote, after.settings) == [], field

        restored = reconfigure(session, ref, change_back(after.settings, before.settings))
        assert change_back(restored.settings, before.settings) == Change(), field
        assert conflicts(before.settings, {}, restored.settings) == [], field


def test_locked_memory_is_unlocked_and_lowered(session: Session, ref: VmRef) -> None:
    """A locked reservation comes off with its number in one call, in two writes in the right order."""
    locked = reconfigure(session, ref, change(session, ref, memoryReservationLockedToMax=True))
    assert locked.settings["memoryReservation"] == 65536

    writes: list[None] = []
    asked = change(session, ref, memoryReservationLockedToMax=False, memoryReservation=0)
    unlocked = reconfigure(session, ref, asked, seen=locked, fence=lambda: writes.append(None))
    assert unlocked.settings["memoryReservationLockedToMax"] is False
    assert unlocked.settings["memoryReservation"] == 0
    assert len(writes) == 2


def test_nothing_to_change_is_nothing_written(session: Session, ref: VmRef) -> None:
    """An empty change only reads: the VM's version stays, and no fence is asked."""
    before = read_vm(session, ref)

    def fence() -> None:
        raise AssertionError("a write was about to happen")

    assert reconfigure(session, ref, Change(), fence=fence).change_version == before.change_version


def test_a_fence_stops_the_write(session: Session, ref: VmRef) -> None:
    """A lost lease is noticed before the write, and nothing is written."""
    before = read_vm(session, ref)

    def fence() -> None:
        raise LeaseLost("another run holds sql16")

    with pytest.raises(LeaseLost):
        reconfigure(session, ref, change(session, ref, numCoresPerSocket=8), fence=fence)
    assert read_vm(session, ref) == before


def test_a_stale_version_is_refused(session: Session, ref: VmRef) -> None:
    """A VM that somebody changed since it was read is not written."""
    stale = read_vm(session, ref)
    reconfigure(session, ref, change(session, ref, numCoresPerSocket=8))
    with pytest.raises(ChangedMeanwhile):
        reconfigure(session, ref, change(session, ref, numCoresPerSocket=2), seen=stale)
    assert read_vm(session, ref).settings["numCoresPerSocket"] == 8


def test_a_running_vm_is_not_reshaped(lab: LabFactory, login: Login) -> None:
    """A change that needs the VM off is refused while it is on, saying that and what to do."""
    session = login(lab())
    ref = find_vm(session, "sql16")
    with pytest.raises(ReconfigureRefused) as caught:
        reconfigure(session, ref, change(session, ref, numCoresPerSocket=8))
    assert caught.value.fix is not None
    assert caught.value.fix.startswith("Shut sql16 down first")


@pytest.mark.parametrize(
    ("desired", "words"),
    [
        ({"numCPUs": 16, "numCoresPerSocket": 3}, r"InvalidArgument \(.*[cC]ores"),
        ({"cpuAffinity": (0, 2, 900)}, r"InvalidArgument \(.*[aA]ffinity"),
        ({"memoryReservation": 10_000_000}, r"(?i)reservation|InsufficientMemory"),
    ],
    ids=["indivisible", "no-such-cpu", "beyond-memory"],
)
def test_vspheres_own_words_are_kept(
    session: Session, ref: VmRef, desired: dict[str, Value], words: str
) -> None:
    """A refused value shows the fault's name, its property and vSphere's message; nothing changed."""
    before = read_vm(session, ref)
    with pytest.raises(ReconfigureRefused, match=words):
        reconfigure(session, ref, change(session, ref, **desired))
    assert read_vm(session, ref).settings == before.settings


def test_virtual_numa_is_refused_on_older_hardware(session: Session, ref: VmRef) -> None:
    """A field that the VM's hardware version lacks never counts as set."""
    with pytest.raises((ReconfigureRefused, ReadBackDiffers)):
        reconfigure(session, ref, change(session, ref, coresPerNumaNode=8))


def test_a_field_that_the_api_lacks_is_refused_before_it_is_sent(session: Session, ref: VmRef) -> None:
    """An API version without a field would drop it silently: it is refused by name."""
    asked = change(session, ref, coresPerNumaNode=8)
    session.transport.version = "vim.version.version12"  # vSphere 6.7
    with pytest.raises(ReconfigureRefused):
        reconfigure(session, ref, asked)


def test_what_reads_back_otherwise_is_named(session: Session, ref: VmRef) -> None:
    """A key that vSphere silently ignores, since a typed field owns it, is found by reading back."""
    ignored = Change((Edit("numvcpus", None, "8"),))
    with pytest.raises(ReadBackDiffers, match=r"reads back differently: numvcpus asked 8, reads nothing\."):
        reconfigure(session, ref, ignored)


def test_a_restricted_account_is_told_what_it_lacks(lab: LabFactory, login: Login) -> None:
    """A missing privilege is named with its object, and the VM is untouched."""
    reader = {"user": "reader@vsphere.local", "privileges": ["System.View", "System.Read"]}
    running = lab(vms=[OFF], accounts=[reader])
    session = login(running, user=reader["user"])
    ref = find_vm(session, "sql16")
    with pytest.raises(PrivilegeMissing) as caught:
        reconfigure(session, ref, change(session, ref, numCoresPerSocket=8))
    assert "reader@vsphere.local lacks the privilege VirtualMachine.Config.CPUCount" in caught.value.what


def test_a_reconfigure_takes_few_round_trips(session: Session, ref: VmRef) -> None:
    """A change costs its task, a pushed wait and one read: no polling."""
    asked = change(session, ref, numCoresPerSocket=8, numCPUs=8)
    before = session.round_trips
    reconfigure(session, ref, asked)
    assert session.round_trips - before <= 8
