"""`vnuma predict`: a table for people, JSON for scripts, and refusals that say what would be right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import vnuma

PAPER = ("predict", "--vcpus", "16", "--memory", "64", "--host-nodes", "2x16/96", "--esxi", "6.0")


def test_every_shape_is_predicted_with_its_confidence() -> None:
    """The paper's arms, under an edition that counts sockets."""
    shown = vnuma(*PAPER, "--edition", "standard", "--sql", "2019")

    assert shown.code == 0, shown.text
    assert "8x2    8 (8 x 2)    low, else 1  8/8, 4 online         8 of 16, else 16  local" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


def test_unlike_hosts_are_rows_of_their_own_in_json() -> None:
    """One shape, two hosts: 18 and 12, or three nodes."""
    shown = vnuma(
        *("predict", "--vcpus", "30", "--memory", "512", "--cores-per-socket", "6", "--format", "json"),
        *("--host-nodes", "2x20/384@7.0", "--host-nodes", "4x14/256@7.0"),
    )
    document = json.loads(shown.out)

    assert document["schema"] == "vnuma/predict/1"
    assert [(row["node_sizes"], row["confidence"]) for row in document["rows"]] == [
        ([18, 12], "low"),
        ([12, 12, 6], "low"),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--cores-per-socket", "5"), "5 cores per socket do not divide 16 vCPUs"),
        (("--edition", "home"), "Use one of developer"),
        (("--sql", "2018"), "there is no SQL Server 2018"),
        (("--set", "memorySpeed=3"), "not a setting"),
        (("--host-nodes", "16"), "2x16/96@7.0"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(options: tuple[str, ...], sentence: str) -> None:
    """Exit code 3, like any wrong input."""
    refused = vnuma(*PAPER, *options)

    assert refused.code == 3
    assert sentence in refused.err


def test_a_vm_of_a_snapshot_is_predicted_as_it_is() -> None:
    """Its own shape on its own host; a host that was not read is named."""
    snapshot = Path(__file__).parents[2] / "estate" / "data" / "inventory-1.json"

    shown = vnuma("predict", "--vm", "sql16", "--inventory", snapshot)

    assert shown.code == 0, shown.text
    assert "on esx01; not read: esx02" in shown.out
    assert "8x2: CPU hot-add hides vNUMA" in shown.out
