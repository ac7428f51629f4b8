"""The message for each kind of fault that the lab injects: what happened, where, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.engine.access.context import VmContext
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.cell.dataset import prepare_cell
from vnuma.engine.cell.measure_cell import measure_cell
from vnuma.engine.cell.shape import shape_cell
from vnuma.engine.run.next_cell import claim_next_cell
from vnuma.errors import InputError, VnumaError
from vnuma.lab import faults
from vnuma.store import attempts
from vnuma.store.rows import Claim, Outcome

HASTY = {"vcenter_retry_s": 0.5}
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
VCENTER = r"127\.0\.0\.1:\d+"
TASKS = r"Look at the VM's recent tasks and events in vCenter\."
NOT_NOW = r"Look at the VM's recent tasks and its host's state in vCenter\."
NETWORK = (
    r"Look whether vCenter is up, or just starting; else check vnuma_vcenter\.host and its port, and that no "
    r"firewall blocks it\."
)
STOPS: dict[str, tuple[dict[str, Any], str, tuple[str, str]]] = {
    "reconfigure_refused": ({}, "shape", (r"vSphere refused the change to sql16: SystemError: .*", TASKS)),
    "datastore_full": (
        {},
        "boot",
        (
            r"vSphere could not power on sql16: NoDiskSpace: Insufficient disk space on datastore '\w+'\.",
            r"Free space on that datastore for the VM's settings, log and swap file\.",
        ),
    ),
    "shutdown_never": (
        {},
        "shape",
        (
            r"Windows in sql16 did not shut down in 2 s \(it is on, Tools run, the guest is running\); the "
            r"VM is still running\.",
            r"Shut it down by hand, or set on_shutdown_timeout: power_off in the study\.",
        ),
    ),
    "tools_never": (
        {},
        "boot",
        (
            r"VMware Tools did not come up in sql16 in 2 s \(it is on, Tools do not run, the guest is "
            r"notRunning\)\.",
            r"Check the VM's console in vCenter; power\.tools_timeout_s sets the deadline\.",
        ),
    ),
    "power_on_refused": (
        {},
        "boot",
        (
            r"vSphere could not power on sql16: GenericVmConfigFault: Failed to power on the virtual .*",
            r"The VM's settings do not fit together on this host: see vnuma plan STUDY and the VM's log\.",
        ),
    ),
    "failover_refused": (
        {},
        "boot",
        (
            r"vSphere could not power on sql16: InsufficientFailoverResourcesFault: Insufficient .*",
            r"vSphere HA keeps capacity of the cluster free for failovers .*",
        ),
    ),
    "question": (
        {},
        "boot",
        (
            r"sql16 waits for an answer in vCenter: \"msg\.uuid\.altered:.* \(choices: Cancel, I Moved It, I "
            r"Copied It\)\.",
            r"Answer it there, on the VM's Summary page; .* 'copied' changes its UUID and MAC addresses\.",
        ),
    ),
    "question_running": (
        {},
        "boot",
        (
            r"sql16 waits for an answer in vCenter: \"msg\.hbacommon\.outofspace:.* "
            r"\(choices: Retry, Cancel\)\.",
            r"Answer it there, on the VM's Summary page; .*",
        ),
    ),
    "topology_stuck": (
        {},
        "boot",
        (
            r"sql16, arm 1x16: the guest shows 4x4, the arm needs 1x16; the guest has 4 vNUMA nodes, the arm "
            r"needs 1 \(.*vmware\.log of this boot agrees with the guest\)\. "
            r"This attempt does not count\.",
            r"Check what the arm needs on this release: vnuma plan STUDY",
        ),
    ),
    "sql_never": (
        {},
        "boot",
        (
            rf"{VCENTER}: SQL Server was not ready within 2 s, waiting for a login: SQL Server does not "
            r"answer: (?!.*127\.0\.0\.1).*",
            r"Check the guest's console and SQL Server's error log; power\.sql_timeout_s sets the deadline\.",
        ),
    ),
    "login_refused": (
        {},
        "boot",
        (
            rf"{VCENTER}: SQL Server refused the login: Login failed for user 'sa'\. This lasted for 2 s "
            r"after the boot\.",
            r"Check user and password, and that the login is enabled and not locked\.",
        ),
    ),
    "drop_mid_result": (
        {"rows": 50},
        "boot",
        (
            rf"{VCENTER}: the connection broke: .*\.",
            r"Check whether the guest or SQL Server restarted: see SQL Server's error log\.",
        ),
    ),
    "vm_changed": (
        {"cpu_reservation_mhz": 500},
        "shape",
        (
            r"sql16 was changed by somebody else since the study began\. Nothing was changed now\.\n"
            r"setting +baseline +we set +now\ncpuReservation +0 +none +500",
            r"Its cells end here\. Choose: vnuma restore sql16 --theirs \| --baseline",
        ),
    ),
    "vm_moved": (
        {"to": "esx02"},
        "ready",
        (
            r"sql16 moved from esx01 to esx02 during the cell\.",
            r"Prevent DRS and people from moving it \(rule A01\)\.",
        ),
    ),
    "session_expired": (
        ALWAYS,
        "boot",
        (
            rf"{VCENTER} has ended our session\. Tried once\.",
            r"Connect again; if it happens again, raise the idle time-out of vCenter's sessions\.",
        ),
    ),
    "vcenter_restart": (
        {"seconds": 60},
        "boot",
        (rf"The connection to {VCENTER} failed \(.*without response\)\. Tried once\.", NETWORK),
    ),
    "task_in_progress": (
        ALWAYS,
        "boot",
        (rf"{VCENTER} could not do this now for sql16 \(TaskInProgress\)\. Tried once\.", NOT_NOW),
    ),
    "host_communication": (
        ALWAYS,
        "boot",
        (rf"{VCENTER} could not do this now for sql16 \(HostCommunication: .*\)\. Tried once\.", NOT_NOW),
    ),
    "invalid_state": (
        ALWAYS,
        "boot",
        (rf"{VCENTER} could not do this now for sql16 \(InvalidState: .*\)\. Tried once\.", NOT_NOW),
    ),
    "unavailable": (
        ALWAYS,
        "boot",
        (rf"The connection to {VCENTER} failed \(503 Service Unavailable\)\. Tried once\.", NETWORK),
    ),
    "answer_lost": (
        ALWAYS,
        "boot",
        (rf"The connection to {VCENTER} failed \(.*without response\)\. Tried once\.", NETWORK),
    ),
}
"""Faults that end a cell: their fields, the step before which they come, what happened and what to do."""

NOT_EVALUATED = {
    "log_missing": r"127\.0\.0\.1 answers 404 Not Found for vmware\.log",
    "log_stale": r"it shows 4 vNUMA nodes, the guest shows 1",
    "ticket_refused": r"administrator@vsphere\.local lacks the privilege Datastore\.Browse on DC0",
}
"""Faults that only cost the evidence of vmware.log, and what is stored instead."""

ELSEWHERE = {
    "account_refused": "tests/e2e/test_accounts.py",
    "keys_written": "tests/e2e/test_not_left_off.py",
    "host_maintenance": "tests/e2e/test_not_left_off.py",
    "host_disconnected": "tests/e2e/test_not_left_off.py",
    "database_recovering": "tests/sqlserver/test_power_cycle.py",
    "shutdown_slow": "tests/e2e/test_reality.py",
    "foreign_lookups": "tests/e2e/test_reporting_streams.py",
    "foreign_pages": "tests/e2e/test_reporting_streams.py",
    "ports_elsewhere": "tests/e2e/test_reporting_streams.py",
}
"""Faults that need more than a cell, and the test that meets them."""


def test_every_kind_of_fault_has_its_words_here(lab: LabFactory) -> None:
    """A kind that is added to the lab fails this test until it is said what users read of it."""
    with pytest.raises(InputError) as refused:
        faults.add(lab().state, {"kind": "gremlins"})

    kinds = re.findall(r"[a-z]+(?:_[a-z]+)*", refused.value.what.partition("want one of ")[2])
    assert set(kinds) == {*STOPS, *NOT_EVALUATED, *ELSEWHERE, "slow"}


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


@pytest.mark.parametrize("kind", STOPS)
def test_a_fault_says_what_happened_where_and_what_to_do(tmp_path: Path, lab: LabFactory, kind: str) -> None:
    """All of the message, as it is stored with the attempt and shown."""
    fields, before, (happened, do) = STOPS[kind]
    running = lab("paper", **(CLUSTER if kind == "vm_moved" else {}))
    power = HASTY | {DEADLINES[name]: 2 for name in DEADLINES if name == kind}
    steps = Steps.prepared(tmp_path / "a", running, power=power, all_arms={"affinity": "none"})
    context = steps.take()
    attempt = claim_next_cell(context)
    assert isinstance(attempt, Claim)

    with pytest.raises(VnumaError) as told:
        _cell(context, attempt, before, lambda: running.fault(kind, **fields))

    assert re.fullmatch(happened, told.value.what), told.value.what
    assert re.fullmatch(do, told.value.fix or "nothing"), told.value.fix
    with steps.store.read() as connection:
        assert attempts.get_attempt(connection, attempt.id).detail == str(told.value)


@pytest.mark.parametrize("kind", NOT_EVALUATED)
def test_a_log_that_cannot_be_had_says_why_and_costs_no_cell(
    tmp_path: Path, lab: LabFactory, kind: str
) -> None:
    """The cell is measured completely, and the reason is stored instead of the evidence."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running)
    context = steps.take()
    attempt = claim_next_cell(context)
    assert isinstance(attempt, Claim)

    _cell(context, attempt, "boot", lambda: running.fault(kind))

    with steps.store.read() as connection:
        stored = attempts.get_attempt(connection, attempt.id)
    effective: Any = stored.effective
    assert re.fullmatch(NOT_EVALUATED[kind], effective["log"]["not_evaluated"])
    assert stored.outcome is Outcome.VALID


def _cell(context: VmContext, attempt: Claim, before: str, strike: Callable[[], None]) -> None:
    """A cell step by step, struck before one of them."""
    for name, step in CELL.items():
        if name == before:
            strike()
        step(context, attempt)
