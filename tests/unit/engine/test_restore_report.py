"""What `vnuma restore` says of VMs that it could not restore."""

from __future__ import annotations

from vnuma.engine.restore.restore_leftovers import RestoreReport
from vnuma.errors import AccountRefused, NotAtBaseline


def test_one_cause_is_reported_once() -> None:
    """A wrong password fails every VM with the same words; the error that decides the exit code is first."""
    wrong = [AccountRefused("vc1 does not accept the password.", fix="Check it.") for _ in range(3)]
    left = NotAtBaseline("sql16 is not at its baseline.", fix="vnuma restore sql16")
    other = AccountRefused("vc2 does not accept the password.", fix="Check it.")

    assert RestoreReport(problems=[*wrong]).ranked == [wrong[0]]
    assert RestoreReport(problems=[wrong[0], other, wrong[1]]).ranked == [wrong[0], other]
    assert RestoreReport(problems=[*wrong, left]).ranked == [left, wrong[0]]
