"""When a vmware.log is evidence of a boot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

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


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"host_age_s": 900}, "it was written 840 s before this boot"),
        ({"age_s": 900}, "it starts 840 s after this boot"),
        ({"earlier": AT.isoformat()}, "it is still the log of the previous boot"),
        ({"host_age_s": None}, "it may belong to any boot"),
        ({"log": VmwareLog()}, "no lines about vNUMA in a known form"),
        ({"log": VmwareLog(vpds=2, doubts=("16 or 5 vCPUs",))}, "it is in doubt: 16 or 5 vCPUs"),
        ({"log": VmwareLog(vpds=2)}, "its lines have no times"),
        ({"log": VmwareLog(numa_at=AT, vpds=2, vcpus=8)}, "it shows 8 vCPUs, the guest has 16"),
        ({"log": VmwareLog(numa_at=AT, vpds=4, vcpus=16)}, "it shows 4 vNUMA nodes, the guest shows 2"),
    ],
)
def test_a_log_that_proves_nothing_is_not_evaluated(given: dict[str, Any], why: str) -> None:
    """Of another boot, or not understood; never invalid, since the guest is what is measured."""
    found = evidence(**given)

    assert found.evaluated is None
    assert why in (found.why_not or "")
