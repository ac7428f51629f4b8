"""Failures during a run: named, stored, survived, and the VM restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import status, vnuma
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study

NO_SQL = {"sql_timeout_s": 2}
NO_SHUTDOWN = {"shutdown_timeout_s": 2}


def test_one_fault_costs_one_attempt_and_the_cell_is_repeated(tmp_path: Path, lab: LabFactory) -> None:
    """The first attempt is stored with its reason, the second is valid, and the VM is restored."""
    running = lab(faults=[{"vm": "sql16", "boot": 3, "kind": "reconfigure_refused"}])
    before = settings_now(running)
    study = write_study(tmp_path, limits={"attempts_per_cell": 2})

    ran = vnuma("run", study, "-i", write_inventory(tmp_path, running))

    assert ran.code == 0, ran.text
    assert "reconfigure refused" in ran.err
    assert settings_now(running) == before


def test_a_guest_that_does_not_shut_down_is_left_running_and_its_cells_end(
    tmp_path: Path, lab: LabFactory
) -> None:
    """No hard power-off: the VM stays as it is, the lease stays, exit code 7 says so."""
    running = lab(faults=[{"kind": "shutdown_never", "vm": "sql16", "boot": 2, "times": 0}])

    ran = vnuma("run", write_study(tmp_path, power=NO_SHUTDOWN), "-i", write_inventory(tmp_path, running))

    assert ran.code == 7, ran.text
    assert settings_now(running)["power"] == "poweredOn"
    assert len(status()["not_at_baseline"]) == 1


@pytest.mark.long
def test_a_hard_power_off_happens_only_when_the_study_says_so(tmp_path: Path, lab: LabFactory) -> None:
    """Then the run continues, and the VM is restored."""
    running = lab(faults=[{"kind": "shutdown_never", "vm": "sql16", "boot": 2, "times": 0}])
    before = settings_now(running)
    power = NO_SHUTDOWN | {"on_shutdown_timeout": "power_off"}

    ran = vnuma("run", write_study(tmp_path, power=power), "-i", write_inventory(tmp_path, running))

    assert ran.code == 0, ran.text
    assert settings_now(running) == before
