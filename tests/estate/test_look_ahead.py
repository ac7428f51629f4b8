"""Looking ahead from a live vCenter: a VM as it is, and a cluster that one could be put into."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import vnuma
from tests.support.lab import LabHandle
from tests.support.site import write_inventory


def test_a_live_vm_is_predicted_and_said_to_be_simulated(shared_lab: LabHandle, tmp_path: Path) -> None:
    """As it is, on its own host; the lab says that it is one."""
    shown = vnuma("predict", "--vm", "sql16", "-i", write_inventory(tmp_path, shared_lab), "--format", "json")

    assert shown.code == 0, shown.text
    document = json.loads(shown.out)
    assert (document["vm"], bool(document["simulated"])) == ("sql16", True)
    assert document["rows"][0]["topology"] == "4x4"
    assert document["rows"][0]["vnuma_nodes"] in {1, 4}
