"""Intended against effective."""

from __future__ import annotations

import pytest

from tests.support.hosts import guest_of
from vnuma.domain.arm import Arm
from vnuma.domain.effective import judge
from vnuma.domain.facts import GuestTopology
from vnuma.domain.prediction import Prediction

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


def test_where_the_rules_allow_two_readings_both_count() -> None:
    """A low-confidence prediction names the other; a third number still does not count."""
    assert judge(ARM, UNSURE, guest_of(16, 2, 8, 1)).counts
    assert not judge(ARM, UNSURE, guest_of(16, 2, 8, 4)).counts


def test_a_stated_number_of_nodes_beats_every_prediction() -> None:
    """vnuma_nodes says what the arm needs."""
    arm = Arm.model_validate({"topology": "2x8", "vnuma_nodes": 1})

    assert judge(arm, SURE, guest_of(16, 2, 8, 1)).counts
    assert not judge(arm, SURE, guest_of(16, 2, 8, 2)).counts


def test_sockets_that_cannot_be_seen_are_not_evaluated() -> None:
    """Neither pass nor fail."""
    assert "2016 SP2" in judge(ARM, SURE, guest_of(16, None, None, 2)).not_evaluated[0]
