"""A study where the note for people cannot be written: the mark on the VM does without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study
from vnuma.domain.vm.role import ELSEWHERE, ROLE

MAY = [need.privilege for need in ROLE] + [
    item.privilege for item in ELSEWHERE if item.privilege != "Global.SetCustomField"
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "account"),
    [
        ({"custom_attributes": False}, {}),
        ({"accounts": [{"user": "study", "privileges": MAY}]}, {"user": "study"}),
    ],
    ids=["no custom attributes", "SetCustomField refused"],
)
def test_a_study_runs_where_no_note_can_be_written(
    tmp_path: Path, lab: LabFactory, scenario: dict[str, Any], account: dict[str, Any]
) -> None:
    """Every cell valid, the VM as it was, and no word about the note."""
    running = lab(**scenario)
    inventory = write_inventory(tmp_path, running, **account)
    before = settings_now(running)

    ran = vnuma("run", write_study(tmp_path), "-i", inventory)

    assert ran.code == 0, ran.text
    assert "2 of 2 cells valid." in ran.err
    assert "settings read back equal" in ran.err
    assert settings_now(running) == before
