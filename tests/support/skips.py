"""The tests that CI may skip. CI installs what all others need, so there a skip without a row here fails."""

from __future__ import annotations

import os
import re

import pytest

SKIPPED_IN_CI = {
    "no recordings of real servers here": "they are other people's data, and in no repository",
    "sshd does not run unprivileged here": "depends on the kernel that CI's container gets",
    "no PID namespace can be made here": "as above",
    "no small file system can be mounted here": "as above",
    "no collection here": "from Ansible Galaxy; the nightly workflow installs both",
    "no vSphere SDK here": "a package that nothing else needs; the nightly workflow installs it",
    "no benchmark's program here": "as above",
    "no Terraform with its vSphere provider here": "two programs that nothing else needs",
}
"""The first words of a skip's reason, and why CI cannot do without it."""


def fail_unlisted(report: pytest.TestReport) -> None:
    """Where CI is set, turn a skip for another reason into a failure."""
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if not re.match(rf"(Skipped: )?({'|'.join(map(re.escape, SKIPPED_IN_CI))})", reason):
        report.outcome = "failed"
        report.longrepr = f"{reason}\nCI has to run this test: install what it needs, or list the reason."
