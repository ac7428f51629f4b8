"""Intended against effective."""

from __future__ import annotations

import pytest

from tests.support.hosts import guest_of
from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.effective import judge
from vnuma.domain.topology.evidence import LogEvidence
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.facts import GuestTopology
from vnuma.logs.errorlog import ErrorLog
from vnuma.logs.vmware import VmwareLog

SURE = Prediction((8, 8), "high", "because")
UNSURE = Prediction((8, 8), "low", "because", (1,))
ARM = Arm.model_validate({"topology": "2x8"})


@pytest.mark.parametrize(
    ("guest", "words"),
    [
        (guest_of(16, 2, 8, 2), None),
        (guest_of(16, None, None, 2), None),
        (guest_of(16, 2, 8, 1), "the guest has 1 vNUMA node, the arm needs 2"),
        (guest_of(16, 4, 4, 2), "the guest shows 4x4, the arm needs 2x8"),
        (guest_of(8, 2, 4, 2), "the guest has 8 CPUs, the arm needs 16"),
        (guest_of(16, 2, 8, 2, offline=12), "SQL Server uses 4 of 16 schedulers"),
    ],
)
def test_a_boot_counts_only_with_the_topology_that_its_arm_needs(
    guest: GuestTopology, words: str | None
) -> None:
    """What differs is said in words; what this version does not show is not held against it."""
    judgement = judge(ARM, SURE, guest)

    assert judgement.counts == (words is None)
    assert words is None or words in "; ".join(judgement.mismatches)


@pytest.mark.parametrize(
    ("stated", "prediction", "counting"), [({}, UNSURE, {1, 2}), ({"vnuma_nodes": 1}, SURE, {1})]
)
def test_both_readings_count_unless_the_arm_states_its_nodes(
    stated: dict[str, int], prediction: Prediction, counting: set[int]
) -> None:
    """A low-confidence prediction names the other reading; vnuma_nodes says what the arm needs."""
    arm = Arm.model_validate({"topology": "2x8", **stated})

    assert {
        nodes for nodes in (1, 2, 4) if judge(arm, prediction, guest_of(16, 2, 8, nodes)).counts
    } == counting


def test_the_error_log_shows_sockets_where_the_view_does_not() -> None:
    """Before 2016 SP2 it is the only one that does."""
    guest = guest_of(16, None, None, 2)

    assert judge(ARM, SURE, guest, start=ErrorLog(sockets=2, cores_per_socket=8)).not_evaluated == ()
    assert judge(ARM, SURE, guest, start=ErrorLog(sockets=4, cores_per_socket=4)).mismatches == (
        "the guest shows 4x4, the arm needs 2x8",
    )
    assert judge(ARM, SURE, guest, start=ErrorLog()).not_evaluated != ()


def test_a_mismatch_is_explained_by_prediction_and_log() -> None:
    """What was expected, why, and whether ESXi's own log says the same."""
    log = LogEvidence("host", VmwareLog(vpds=1, vcpus=16))
    hot = LogEvidence("host", VmwareLog(vpds=1, vcpus=16, forced_uma=True))

    assert judge(ARM, SURE, guest_of(16, 2, 8, 1), evidence=log).mismatches == (
        "the guest has 1 vNUMA node, the arm needs 2 (predicted 2, confidence high: because; "
        "vmware.log of this boot agrees with the guest)",
    )
    assert (
        "CPU hot-add forces one node" in judge(ARM, SURE, guest_of(16, 2, 8, 1), evidence=hot).mismatches[0]
    )


def test_a_log_never_decides() -> None:
    """A log that is unavailable, or of another boot, is not evaluated."""
    unread = LogEvidence(why_not="esx01 answers 404 Not Found for vmware.log")
    other = LogEvidence("host", VmwareLog(vpds=7), "it shows 7 vNUMA nodes, the guest shows 2")

    for evidence in (unread, other):
        judgement = judge(ARM, SURE, guest_of(16, 2, 8, 2), evidence=evidence)
        assert judgement.counts
        assert judgement.not_evaluated == (f"vmware.log: {evidence.why_not}",)


def test_what_is_worth_knowing_is_noted() -> None:
    """A low-confidence prediction that did not come true, and ESXi's own suggestion."""
    log = LogEvidence("host", VmwareLog(vpds=1, suggested_cores_per_socket=8))

    assert judge(ARM, UNSURE, guest_of(16, 2, 8, 1), evidence=log).notes == (
        "the guest has 1 vNUMA node, predicted were 2 (confidence low)",
        "ESXi suggests 8 cores per socket (vmware.log)",
    )
