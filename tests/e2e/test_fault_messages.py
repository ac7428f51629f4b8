"""The message for each kind of fault that the lab injects: what happened, where, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.lab import LabHandle
from vnuma.engine.access.context import VmContext
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.cell.dataset import prepare_cell
from vnuma.engine.cell.measure_cell import measure_cell
from vnuma.engine.cell.shape import shape_cell
from vnuma.engine.run.next_cell import claim_next_cell
from vnuma.errors import InputError, VnumaError
from vnuma.lab import faults
from vnuma.store import attempts
from vnuma.store.rows import Claim

DEADLINES = {
    "shutdown_never": "shutdown_timeout_s",
    "tools_never": "tools_timeout_s",
    "sql_never": "sql_timeout_s",
    "login_refused": "sql_timeout_s",
}
"""What ends the wait for something that never comes: short for that fault alone."""
CLUSTER: dict[str, Any] = {
    "clusters": [{"name": "c1", "drs": "off"}],
    "hosts": [{"name": "esx01", "cluster": "c1"}, {"name": "esx02", "cluster": "c1"}],
}

Step = Callable[[VmContext, Claim], object]
CELL: dict[str, Step] = {
    "shape": shape_cell,
    "boot": boot_cell,
    "ready": ready_cell,
    "prepare": prepare_cell,
    "measure": measure_cell,
}

ALWAYS = {"times": 0}
TRANSIENT = {
    **{"session_expired": ALWAYS, "task_in_progress": ALWAYS, "host_communication": ALWAYS},
    **{"invalid_state": ALWAYS, "unavailable": ALWAYS, "answer_lost": ALWAYS},
    "vcenter_restart": {"seconds": 60},
}
"""They pass (`test_flaky_vcenter.py`); these fields make them stay."""

STOPS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "reconfigure_refused": ({}, "shape", "ReconfigureRefused", "recent tasks"),
    "datastore_full": ({}, "boot", "PowerFailed", "Free space on that datastore"),
    "shutdown_never": ({}, "shape", "ShutdownTimeout", "on_shutdown_timeout: power_off"),
    "tools_never": ({}, "boot", "ToolsTimeout", "power.tools_timeout_s"),
    "power_on_refused": ({}, "boot", "PowerFailed", "vnuma plan STUDY"),
    "failover_refused": ({}, "boot", "PowerFailed", "vSphere HA"),
    "question": ({}, "boot", "QuestionPending", "Answer it there"),
    "question_running": ({}, "boot", "QuestionPending", "Answer it there"),
    "topology_stuck": ({}, "boot", "TopologyMismatch", "vnuma plan STUDY"),
    "sql_never": ({}, "boot", "SqlTimeout", "power.sql_timeout_s"),
    "login_refused": ({}, "boot", "LoginRefused", "user and password"),
    "drop_mid_result": ({"rows": 50}, "boot", "ConnectionDropped", "error log"),
    "vm_changed": ({"cpu_reservation_mhz": 500}, "shape", "SomebodysChange", "vnuma restore sql16 --theirs"),
    "vm_moved": ({"to": "esx02"}, "ready", "HostChanged", "A01"),
    **{kind: (fields, "boot", "", "vCenter") for kind, fields in TRANSIENT.items()},
}
"""Faults that end a cell: their fields, the step before which they come, the error and its next step."""

TWINS = {"datastore_full", "failover_refused", "question"}
"""They end a cell as another fault does."""

LOGS = ("log_missing", "log_stale", "ticket_refused")
"""Faults that only cost the evidence of vmware.log: `test_evidence.py`."""


ELSEWHERE = {
    **dict.fromkeys(LOGS, "tests/e2e/test_evidence.py"),
    "account_refused": "tests/e2e/test_accounts.py",
    **dict.fromkeys(
        ("keys_written", "host_maintenance", "host_disconnected"), "tests/e2e/test_not_left_off.py"
    ),
    "database_recovering": "tests/sqlserver/test_power_cycle.py",
    "shutdown_slow": "tests/e2e/test_reality.py",
    **dict.fromkeys(
        ("foreign_lookups", "foreign_pages", "ports_elsewhere"), "tests/e2e/test_reporting_streams.py"
    ),
}
"""Faults that need more than a cell, and the test that meets them."""


def test_every_kind_of_fault_has_its_words_here(shared_lab: LabHandle) -> None:
    """A kind that is added to the lab fails this test until it is said what users read of it."""
    with pytest.raises(InputError) as refused:
        faults.add(shared_lab.state, {"kind": "gremlins"})

    kinds = re.findall(r"[a-z]+(?:_[a-z]+)*", refused.value.what.partition("want one of ")[2])
    assert set(kinds) == {*STOPS, *ELSEWHERE, "slow"}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_a_fault_that_is_met_elsewhere_is_met_there(kind: str) -> None:
    """Its test names it."""
    assert kind in (Path(__file__).parents[2] / ELSEWHERE[kind]).read_text(encoding="utf-8")


def test_a_slow_boot_is_no_failure_and_its_times_tell(tmp_path: Path, lab: LabFactory) -> None:
    """Nothing is cut off or corrected: every sample of that boot is so many times as long."""
    took = []
    for factor in (1, 5):
        running = lab()
        steps = Steps.prepared(tmp_path / f"{factor}", running, workload={"sizes": [100]})
        context = steps.take()
        if factor != 1:
            running.fault("slow", factor=factor)
        steps.measure(context)
        took.append([stored.sample.elapsed_ms or 0 for stored in steps.samples])

    assert took[1] == [pytest.approx(5 * usual, rel=0.02) for usual in took[0]]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(one, marks=pytest.mark.long if one in {*TRANSIENT, *TWINS} else ()) for one in STOPS],
)
def test_a_fault_says_what_happened_where_and_what_to_do(tmp_path: Path, lab: LabFactory, kind: str) -> None:
    """As it is stored with the attempt and shown."""
    fields, before, error, do = STOPS[kind]
    running = lab("paper", **(CLUSTER if kind == "vm_moved" else {}))
    power = {"vcenter_retry_s": 0.5} | {DEADLINES[name]: 1 for name in DEADLINES if name == kind}
    steps = Steps.prepared(tmp_path / "a", running, power=power, all_arms={"affinity": "none"})
    context = steps.take()
    attempt = claim_next_cell(context)
    assert isinstance(attempt, Claim)

    with pytest.raises(VnumaError) as told:
        _cell(context, attempt, before, lambda: running.fault(kind, **fields))

    assert type(told.value).__name__ == error or kind in TRANSIENT
    assert "sql16" in told.value.what or "127.0.0.1" in told.value.what
    assert do in (told.value.fix or "")
    with steps.store.read() as connection:
        assert attempts.get_attempt(connection, attempt.id).detail == str(told.value)


def _cell(context: VmContext, attempt: Claim, before: str, strike: Callable[[], None]) -> None:
    """A cell step by step, struck before one of them."""
    for name, step in CELL.items():
        if name == before:
            strike()
        step(context, attempt)
