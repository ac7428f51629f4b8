"""What is wrong around a study: one clear sentence, its exit code, and no change to the VM."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.prepared import prepare
from tests.support.site import write_inventory, write_study
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.inventory import read_targets
from vnuma.errors import VnumaError


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        pytest.param(False, "There is no ODBC driver at", marks=pytest.mark.long, id="no library"),
        pytest.param(True, "The ODBC driver could not be loaded: ", id="no library that loads"),
    ],
)
def test_no_odbc_driver_says_what_to_install(
    tmp_path: Path, lab: LabFactory, there: bool, sentence: str
) -> None:
    """Looked for, not found or not to be loaded, and the command that helps; nothing is touched."""
    running = lab()
    driver = tmp_path / "libtdsodbc.so"
    if there:
        driver.write_text("no library", encoding="utf-8")

    ran = vnuma(
        "run",
        write_study(tmp_path),
        "-i",
        write_inventory(tmp_path, running),
        env={"VNUMA_ODBC_DRIVER": str(driver)},
    )

    assert ran.code == 4
    assert sentence in ran.err
    assert str(driver) in ran.err
    assert not [event for event in running.events if event["event"] == "power_off"]


@pytest.mark.parametrize(
    ("vm", "scenario", "code", "sentence"),
    [
        ("sql17", {}, 4, "sql17"),
        (
            "sql16",
            {"vms": [{"name": "sql16", "folder": "Test"}, {"name": "sql16", "folder": "Old"}]},
            4,
            "Two VMs are named sql16",
        ),
        ("sql16", {"vms": [{"name": "sql16", "hardware": 4}]}, 5, "hardware version 4; vNUMA needs 8"),
        ("sql16", {"host": {"memory_gb": 48}}, 5, "reserves 65536 MB, but esx01 has 49152 MB"),
    ],
)
def test_a_vm_that_cannot_be_studied_is_refused(
    tmp_path: Path, lab: LabFactory, vm: str, scenario: dict[str, Any], code: int, sentence: str
) -> None:
    """Not there, not one, too old, or too large for its host."""
    running = lab(**scenario)
    inventory = write_inventory(tmp_path, running, [next(iter(running.vms))])
    text = inventory.read_text(encoding="utf-8").replace(running.ready["vms"][0]["path"], vm)
    inventory.write_text(text, encoding="utf-8")
    name = next(iter(running.vms)).strip("/").replace("/", "_")
    study = write_study(tmp_path, vm=name).read_text(encoding="utf-8")
    parsed = parse_study(study, "study")
    targets = read_targets(inventory, parsed.vms)

    with pytest.raises(VnumaError, match=re.escape(sentence)) as refused:
        prepare(parsed, study, targets, inventory)

    assert refused.value.exit_code == code
    assert not [event for event in running.events if event["event"] == "power_off"]
