"""What is wrong around a study: one clear sentence, its exit code, and no change to the VM."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.site import write_inventory, write_study


@pytest.mark.parametrize("there", [pytest.param(False, marks=pytest.mark.long), True])
def test_no_odbc_driver_says_what_to_install(tmp_path: Path, lab: LabFactory, there: bool) -> None:
    """Not found or not to be loaded; nothing is touched."""
    running = lab()
    driver = tmp_path / "libtdsodbc.so"
    if there:
        driver.write_text("no library", encoding="utf-8")
    arguments = ("run", write_study(tmp_path), "-i", write_inventory(tmp_path, running))

    ran = vnuma(*arguments, env={"VNUMA_ODBC_DRIVER": str(driver)})

    assert (ran.code, str(driver) in ran.err) == (4, True)
    assert not [event for event in running.events if event["event"] == "power_off"]
