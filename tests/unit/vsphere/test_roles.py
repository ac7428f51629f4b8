"""Users in vCenter's spellings."""

from __future__ import annotations

import pytest

from vnuma.vsphere.surroundings import same_principal


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("study@corp.local", "CORP.LOCAL\\study", True),
        ("VSPHERE.LOCAL\\Study", "study@vsphere.local", True),
        ("study@corp.local", "study@vsphere.local", False),
        ("study", "studyx", False),
    ],
)
def test_a_user_is_one_in_both_spellings(left: str, right: str, same: bool) -> None:
    """Else a second run would give the role again."""
    assert same_principal(left, right) is same
