"""The mark of a lease on the VM itself."""

from __future__ import annotations

import pytest

from tests.vsphere.support import LabFactory, Login
from vnuma.errors import PrivilegeMissing
from vnuma.vsphere.apply import ChangedMeanwhile
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.run_mark import read_mark, write_mark


def test_a_mark_is_written_read_and_removed(lab: LabFactory, login: Login) -> None:
    """A mark on a running VM reads back, is part of the VM's facts, and goes away again."""
    session = login(lab())
    ref = find_vm(session, "sql16")
    first = read_mark(session, ref)
    assert first.text is None

    text = '{"run": "7f3a", "token": 3, "holder": "ctl01"}'
    written = write_mark(session, ref, text, first.change_version)
    assert written.text == text
    assert written.change_version != first.change_version
    assert read_vm(session, ref).lease == text

    assert write_mark(session, ref, None, written.change_version).text is None
    assert read_vm(session, ref).lease is None


def test_of_two_writers_one_wins(lab: LabFactory, login: Login) -> None:
    """Two controllers that read the same version: the second is refused, and overwrites nothing."""
    running = lab()
    one, two = login(running), login(running)
    ours, theirs = find_vm(one, "sql16"), find_vm(two, "sql16")
    seen_by_one, seen_by_two = read_mark(one, ours), read_mark(two, theirs)

    write_mark(one, ours, "one", seen_by_one.change_version)
    with pytest.raises(ChangedMeanwhile):
        write_mark(two, theirs, "two", seen_by_two.change_version)
    assert read_mark(two, theirs).text == "one"


def test_a_mark_needs_its_privilege(lab: LabFactory, login: Login) -> None:
    """An account that may not write advanced settings gets an error, and no mark is left."""
    reader = {"user": "reader@vsphere.local", "privileges": ["System.View", "System.Read"]}
    session = login(lab(accounts=[reader]), user=reader["user"])
    ref = find_vm(session, "sql16")
    mark = read_mark(session, ref)
    with pytest.raises(PrivilegeMissing):
        write_mark(session, ref, "mine", mark.change_version)
    assert read_mark(session, ref) == mark
