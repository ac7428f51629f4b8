"""The readable copy of a lease: there for people, never in the way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vsphere.support import LabFactory, Login
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.run_mark import clear_note, read_note, write_note

WORDS = "under study by ann@ctl1, run quick.4"


def test_a_note_is_written_replaced_and_cleared(lab: LabFactory, login: Login) -> None:
    """The attribute is made once; the VM's configuration is not touched by it."""
    session = login(lab())
    ref = find_vm(session, "sql16")
    version = read_vm(session, ref).change_version

    assert write_note(session, ref, "an older one")
    assert write_note(session, ref, WORDS)
    assert read_note(session, ref) == WORDS
    clear_note(session, ref)

    assert read_note(session, ref) == ""
    assert read_vm(session, ref).change_version == version


def test_an_account_that_may_not_writes_none(lab: LabFactory, login: Login) -> None:
    """Neither the definition nor the value: said by False, and clearing does not fail either."""
    running = lab(accounts=[{"user": "limited", "privileges": ["Global.SetCustomField"]}, {"user": "none"}])
    limited, nobody = login(running, user="limited"), login(running, user="none")

    assert not write_note(limited, find_vm(limited, "sql16"), WORDS)
    owner = login(running)
    assert write_note(owner, find_vm(owner, "sql16"), WORDS)
    assert write_note(limited, find_vm(limited, "sql16"), "by limited")
    assert not write_note(nobody, find_vm(nobody, "sql16"), WORDS)
    clear_note(nobody, find_vm(nobody, "sql16"))
    assert read_note(owner, find_vm(owner, "sql16")) == "by limited"


def test_without_a_note_there_is_nothing_to_clear(lab: LabFactory, login: Login) -> None:
    """A VM that never had one is read, and nothing is sent."""
    session = login(lab())
    ref = find_vm(session, "sql16")

    clear_note(session, ref)

    assert read_note(session, ref) == ""


@pytest.mark.parametrize(
    "scenario", [{"custom_attributes": False}, {"standalone": True}], ids=["vCenter without", "ESXi host"]
)
def test_where_there_are_no_custom_attributes_there_is_no_note(
    lab: LabFactory, login: Login, scenario: dict[str, Any]
) -> None:
    """Said by False; nothing is there to be read or cleared, and nothing fails."""
    session = login(lab(**scenario))
    ref = find_vm(session, "sql16")

    assert session.content.customFieldsManager is None
    assert not write_note(session, ref, WORDS)
    assert read_note(session, ref) == ""
    clear_note(session, ref)
