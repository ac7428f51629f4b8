"""Failures during a run: named, stored, survived, and the VM restored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import status, vnuma
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study

NO_SQL = {"sql_timeout_s": 2}
NO_SHUTDOWN = {"shutdown_timeout_s": 2}


@pytest.mark.parametrize(
    ("fault", "reason", "power"),
    [
        ({"kind": "reconfigure_refused", "boot": 3}, "reconfigure refused", {}),
        *(
            pytest.param(fault, reason, power, marks=pytest.mark.long)
            for fault, reason, power in (
                ({"kind": "power_on_refused"}, "power failed", {}),
                ({"kind": "sql_never"}, "sql timeout", NO_SQL),
                ({"kind": "login_refused"}, "login refused", NO_SQL),
                ({"kind": "drop_mid_result", "rows": 50}, "connection dropped", {}),
                ({"kind": "topology_stuck"}, "topology mismatch", {}),
            )
        ),
    ],
)
def test_one_fault_costs_one_attempt_and_the_cell_is_repeated(
    tmp_path: Path, lab: LabFactory, fault: dict[str, Any], reason: str, power: dict[str, float]
) -> None:
    """The first attempt is stored with its reason, the second is valid, and the VM is restored."""
    running = lab(faults=[{"vm": "sql16", "boot": 2, **fault}])
    before = settings_now(running)
    study = write_study(tmp_path, power=power, limits={"attempts_per_cell": 2})

    ran = vnuma("run", study, "-i", write_inventory(tmp_path, running))

    assert ran.code == 0, ran.text
    assert reason in ran.err
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
def test_a_refused_mark_ends_the_run_before_anything_is_changed(tmp_path: Path, lab: LabFactory) -> None:
    """The first write to a VM is the run's mark: where that is refused, nothing else is tried."""
    running = lab(faults=[{"kind": "reconfigure_refused", "vm": "sql16", "boot": 2}])
    before = settings_now(running)

    ran = vnuma("run", write_study(tmp_path), "-i", write_inventory(tmp_path, running))

    assert ran.code == 6, ran.text
    assert settings_now(running) == before
    assert status()["not_at_baseline"] == []


@pytest.mark.long
def test_a_hard_power_off_happens_only_when_the_study_says_so(tmp_path: Path, lab: LabFactory) -> None:
    """Then the run continues, and the VM is restored."""
    running = lab(faults=[{"kind": "shutdown_never", "vm": "sql16", "boot": 2, "times": 0}])
    before = settings_now(running)
    power = NO_SHUTDOWN | {"on_shutdown_timeout": "power_off"}

    ran = vnuma("run", write_study(tmp_path, power=power), "-i", write_inventory(tmp_path, running))

    assert ran.code == 0, ran.text
    assert settings_now(running) == before


@pytest.mark.long
def test_too_many_failed_cells_stop_the_vm(tmp_path: Path, lab: LabFactory) -> None:
    """max_failed_cells: 0: the first failed cell is the last. Exit code 6, and the VM is restored."""
    running = lab(faults=[{"kind": "sql_never", "vm": "sql16", "boot": 2}])
    before = settings_now(running)
    study = write_study(tmp_path, power=NO_SQL, limits={"max_failed_cells": 0})

    ran = vnuma("run", study, "-i", write_inventory(tmp_path, running))

    assert ran.code == 6, ran.text
    assert re.search(
        r"failed, sql timeout; given up\n  127\.0\.0\.1:\d+: SQL Server was not ready.*\n  Check the guest's",
        ran.err,
    )
    assert settings_now(running) == before
    assert [(run["valid"], run["total"]) for run in status()["runs"]] == [(0, 2)]
