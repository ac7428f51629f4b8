"""Finding VMs by name, path and UUID."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lab import LabHandle, start_lab
from tests.vsphere.support import Login, vm
from vnuma.errors import VmNotFound
from vnuma.vsphere.connect import Session
from vnuma.vsphere.inventory import paths
from vnuma.vsphere.read import find_vm, find_vm_by_uuid, read_vm


@pytest.fixture(scope="module")
def two_folders(lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHandle]:
    """A vCenter with one name in two folders, another VM, and one in a vApp."""
    in_vapp = {"folder": "Old", "around": {"vapp": "Shop"}}
    vms = [vm(folder="Test"), vm(folder="Old"), vm("sql32", folder="Test"), vm("deep", **in_vapp)]
    handle = start_lab(lab_binary, tmp_path_factory.mktemp("folders"), {"vms": vms}, {})
    yield handle
    handle.stop()


@pytest.fixture
def here(two_folders: LabHandle, login: Login) -> Session:
    """A session at that vCenter."""
    return login(two_folders)


def test_a_unique_name_is_found(here: Session) -> None:
    """A name that one VM has finds it, in whatever folder, with its path."""
    found = read_vm(here, find_vm(here, "sql32"))
    assert (found.name, found.path) == ("sql32", "/DC0/vm/Test/sql32")


def test_a_name_takes_few_round_trips(here: Session) -> None:
    """Finding by name costs a view, one bulk read and the view's end, however many VMs there are."""
    before = here.round_trips
    find_vm(here, "sql32")
    assert here.round_trips - before <= 3


@pytest.mark.parametrize("path", ["/DC0/vm/Test/sql16", "/DC0/vm/Old/sql16"])
def test_a_path_distinguishes_two_vms_of_one_name(here: Session, path: str) -> None:
    """The inventory path finds the one VM that lies there."""
    assert read_vm(here, find_vm(here, path)).path == path


def test_a_vapp_lies_in_its_folder(here: Session) -> None:
    """A vApp's path is that of its folder, not that of the resource pool which is its parent."""
    found = find_vm(here, "deep")
    assert read_vm(here, found).path == "/DC0/vm/Old/Shop/deep"
    assert list(paths(here, [found])) == ["/DC0/vm/Old/Shop/deep"]


def test_two_vms_of_one_name_are_both_named(here: Session) -> None:
    """A name that two VMs have is refused with both paths, and the fix gives one."""
    with pytest.raises(VmNotFound) as caught:
        find_vm(here, "sql16")
    assert caught.value.what == "Two VMs are named sql16: /DC0/vm/Old/sql16 and /DC0/vm/Test/sql16."
    assert caught.value.fix == "Give the path: vm: /DC0/vm/Old/sql16"


def test_a_mistyped_name_meets_its_neighbours(here: Session) -> None:
    """A name that no VM has is answered with names that look like it."""
    with pytest.raises(VmNotFound) as caught:
        find_vm(here, "sql23")
    assert caught.value.fix is not None
    assert "sql32" in caught.value.fix


def test_a_name_unlike_any_says_how_many_are_seen(here: Session) -> None:
    """Where nothing looks alike, the number of visible VMs hints at missing permissions."""
    with pytest.raises(VmNotFound) as caught:
        find_vm(here, "exchange")
    assert caught.value.fix is not None


def test_a_wrong_path_says_where_the_name_is(here: Session) -> None:
    """A path with a VM's name in the wrong folder is answered with the right one."""
    with pytest.raises(VmNotFound):
        find_vm(here, "/DC0/vm/sql32")


@pytest.mark.parametrize("path", ["/DC0/vm/nothing", "/DC0/vm/Test", "/nowhere/vm/nothing"])
def test_a_path_without_a_vm_is_not_found(here: Session, path: str) -> None:
    """A path that leads nowhere, or to a folder, is not a VM."""
    with pytest.raises(VmNotFound):
        find_vm(here, path)


def test_the_instance_uuid_finds_a_vm(here: Session) -> None:
    """The UUID that a store keeps leads back to the VM."""
    known = read_vm(here, find_vm(here, "/DC0/vm/Old/sql16"))
    assert find_vm_by_uuid(here, known.instance_uuid)._GetMoId() == known.moid


def test_an_unknown_uuid_is_not_found(here: Session) -> None:
    """A UUID of no VM is named in the error."""
    unknown = "00000000-1111-2222-3333-444444444444"
    with pytest.raises(VmNotFound):
        find_vm_by_uuid(here, unknown)
