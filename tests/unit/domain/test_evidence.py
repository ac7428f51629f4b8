"""When a vmware.log is evidence of a boot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.hosts import guest_of
from vnuma.domain.topology.evidence import LogEvidence, evidence_of_boot
from vnuma.domain.vm.facts import GuestTopology
from vnuma.logs.vmware import VmwareLog

AT = datetime(2026, 11, 17, 20, 0, tzinfo=UTC)
LOG = VmwareLog(began=AT, numa_at=AT, vcpus=16, vpds=2, ppds=2, vpd_sizes=(8, 8))
GUEST = guest_of(16, 2, 8, 2)


def evidence(
    log: VmwareLog = LOG,
    *,
    age_s: float = 60,
    host_age_s: float | None = 60,
    earlier: str | None = None,
    guest: GuestTopology = GUEST,
) -> LogEvidence:
    """The log read `host_age_s` after its lines were written, of a boot that is `age_s` old."""
    return evidence_of_boot(
        log,
        source="host",
        host_time=None if host_age_s is None else AT + timedelta(seconds=host_age_s),
        boot_age_s=age_s,
        earlier=earlier,
        guest=guest,
    )


def test_the_log_of_this_boot_is_evidence() -> None:
    """Whatever the clocks of host and vCenter say, both ages agree."""
    assert evidence().evaluated is LOG
    assert evidence(age_s=30, host_age_s=100).evaluated is LOG


def test_a_log_that_began_before_the_boot_before_is_another_boots() -> None:
    """Its age is more than a power-on can take."""
    assert evidence(host_age_s=900).why_not == "it was written 840 s before this boot"


def test_a_log_that_began_after_this_boot_is_a_later_boots() -> None:
    """As one that is fetched long after: the VM was powered on again meanwhile."""
    assert evidence(age_s=900, host_age_s=60).why_not == "it starts 840 s after this boot"


def test_the_log_that_the_boot_before_had_already_is_not_this_boots() -> None:
    """However short the cells are."""
    assert evidence(earlier=AT.isoformat()).why_not == "it is still the log of the previous boot"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (VmwareLog(), "no lines about vNUMA in a known form"),
        (
            VmwareLog(vpds=2, doubts=("the total line says 16 vCPUs, the detail lines 5",)),
            "it is in doubt: the total line says 16",
        ),
        (VmwareLog(vpds=2), "its lines have no times"),
        (VmwareLog(numa_at=AT, vpds=2, vcpus=8), "it shows 8 vCPUs, the guest has 16"),
        (VmwareLog(numa_at=AT, vpds=4, vcpus=16), "it shows 4 vNUMA nodes, the guest shows 2"),
    ],
)
def test_a_log_that_proves_nothing_is_not_evaluated(log: VmwareLog, words: str) -> None:
    """Never invalid: the guest is what is measured."""
    found = evidence(log)

    assert found.evaluated is None
    assert words in (found.why_not or "")


def test_a_host_that_tells_no_time_leaves_the_boot_open() -> None:
    """Its answer had no date."""
    assert "it may belong to any boot" in (evidence(host_age_s=None).why_not or "")
