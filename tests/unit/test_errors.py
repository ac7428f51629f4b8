"""What the operating system refuses: the hint fits the reason, and a bug stays a bug."""

from __future__ import annotations

import errno
import os

import pytest

from vnuma.engine.lease.baseline import SomebodysChange
from vnuma.errors import (
    AttemptFailed,
    EnvironmentProblem,
    StoreError,
    VnumaError,
    WaitTimeout,
    from_os_error,
    is_os_failure,
)
from vnuma.vsphere.apply import ChangedMeanwhile


@pytest.mark.parametrize(
    ("number", "kind", "helps"),
    [
        (errno.ENOSPC, StoreError, "df -h '/a b'"),
        (errno.EDQUOT, StoreError, "df -h '/a b'"),
        (errno.EFBIG, StoreError, "ulimit -f"),
        (errno.EROFS, StoreError, "findmnt --target '/a b'"),
        (errno.EIO, StoreError, "dmesg"),
        (errno.EACCES, EnvironmentProblem, "ls -la '/a b'"),
        (errno.ENOTDIR, EnvironmentProblem, "VNUMA_HOME"),
    ],
)
def test_the_command_that_helps_depends_on_the_reason(
    number: int, kind: type[VnumaError], helps: str
) -> None:
    """Space is asked for only where it is lacking; the folder is one that can be pasted into a shell."""
    refused = OSError(number, os.strerror(number), "/a b/vnuma.audit.jsonl")
    told = from_os_error(refused)

    assert is_os_failure(refused)
    assert type(told) is kind
    assert "/a b/vnuma.audit.jsonl" in told.what
    assert helps in str(told.fix)
    assert ("space" in str(told.fix)) is (number in (errno.ENOSPC, errno.EDQUOT))


def test_what_no_machine_is_to_blame_for_stays_a_bug() -> None:
    """A missing file was looked for in the wrong place; another user's process is not a file."""
    assert not is_os_failure(FileNotFoundError(errno.ENOENT, "No such file", "/a"))
    assert not is_os_failure(PermissionError(errno.EPERM, "Operation not permitted"))


def test_the_reason_of_a_failed_attempt_is_what_stores_have() -> None:
    """Rows of earlier versions are read by these identifiers, whatever a class is called."""
    assert {kind.reason for kind in AttemptFailed.__subclasses__() if kind.__module__ == "vnuma.errors"} == {
        *("shutdown_timeout", "reconfigure_refused", "power_failed", "question_pending"),
        *(
            "read_back_differs",
            "vsphere_timeout",
            "tools_timeout",
            "sql_timeout",
            "database_missing",
            "study_setup_failed",
            "connection_dropped",
            "measurement_failed",
        ),
        *("host_changed", "host_not_ready", "topology_mismatch", "wrong_server", "placement_not_proven"),
    }
    assert SomebodysChange.reason == "changed_by_somebody"
    assert ChangedMeanwhile.reason == "changed_meanwhile"
    assert WaitTimeout.reason == "vsphere_timeout"
