"""What may be skipped, and where."""

from __future__ import annotations

import pytest

from tests.support.skips import SKIPPED_IN_CI, fail_unlisted


@pytest.mark.parametrize(
    ("ci", "reason", "outcome"),
    [
        ("", "Skipped: no numactl", "skipped"),
        ("true", "Skipped: no numactl", "failed"),
        ("true", f"Skipped: {next(iter(SKIPPED_IN_CI))}: (why)", "skipped"),
        ("true", "not on a Monday", "failed"),
    ],
)
def test_in_ci_a_skip_without_a_listed_reason_fails(
    monkeypatch: pytest.MonkeyPatch, ci: str, reason: str, outcome: str
) -> None:
    """A test that needs a program is run by those who have it; CI has it."""
    monkeypatch.setenv("CI", ci)
    report = pytest.TestReport(
        nodeid="a test",
        location=("file", 1, "a test"),
        keywords={},
        when="setup",
        outcome="skipped",
        longrepr=("file", 1, reason),
    )

    fail_unlisted(report)

    assert report.outcome == outcome
