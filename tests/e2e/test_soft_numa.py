"""Automatic soft-NUMA as a factor: switched for a boot, seen by SQL Server, and restored from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.site import write_inventory
from vnuma.domain.arm.arm import Arm
from vnuma.domain.study.study import Study
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.setting import Power, is_evidence
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.audit.log import audit_lines, journal_of
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.instance.sql_settings import SOFT_NUMA, Boot, read_baseline
from vnuma.engine.lease.attempt import finish
from vnuma.engine.lease.baseline import baseline_settings
from vnuma.errors import NotAtBaseline, PreflightBlocked
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance.server_configuration import SoftNuma, read_soft_numa
from vnuma.store import leases
from vnuma.store.rows import Claim, Outcome
from vnuma.workloads.interface import Document

ON = SoftNuma(True, True)
ARMS = [{"topology": "1x16", "soft_numa": "on"}, {"topology": "1x16", "name": "whole", "soft_numa": "off"}]
DESIGN = {"blocks": 1, "order": "fixed", "a_a": False, "warmups": 0, "iterations": 1}


def prepared(home: Path, running: LabHandle, arms: Sequence[dict[str, str]] = ARMS) -> Steps:
    """A study of one topology with and without soft-NUMA, in this order."""
    return Steps.prepared(home, running, reference="1x16", arms=list(arms), design=DESIGN)


def state(steps: Steps) -> SoftNuma | None:
    """What SQL Server has now."""
    with connect(sql_server(steps.target)) as connection:
        return read_soft_numa(connection)


def boot(context: VmContext, attempt: Claim) -> Document:
    """Power on and look; the attempt counts."""
    boot_cell(context, attempt)
    seen = ready_cell(context, attempt)
    finish(context, attempt, Outcome.VALID, None, None)
    assert seen
    return seen


def test_each_arm_boots_with_its_own_soft_numa_and_the_servers_own_comes_back(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Sixteen cores are two CPU nodes with it and one without; every switch has its audit line."""
    steps = prepared(tmp_path / "a", lab())
    context = steps.take()
    assert SOFT_NUMA.baseline_of(steps.vm) is True

    split = boot(context, steps.shape(context))["guest"]
    whole = boot(context, steps.shape(context))["guest"]

    assert (split["numa_nodes"], split["sql_cpu_nodes"]) == (1, 2)
    assert (whole["numa_nodes"], whole["sql_cpu_nodes"]) == (1, 1)
    assert state(steps) == SoftNuma(False, False)

    done = steps.restore()

    assert state(steps) == ON
    checked = [name for name in baseline_settings(steps.vm) if not is_evidence(name)]
    assert done.equal == done.settings == len(checked) + 1
    switches = [line.change for line in audit_lines(steps.store, None) if line.action == "soft-NUMA"]
    assert [(change[0]["before"], change[0]["after"]) for change in switches] == [
        (True, False),
        (False, True),
    ]


def test_it_is_restored_on_a_vm_that_was_left_off(tmp_path: Path, lab: LabFactory) -> None:
    """The VM is started for it, and once more to bring it about."""
    steps = prepared(tmp_path / "a", lab())
    context = steps.take()
    boot(context, steps.shape(context))
    steps.shape(context)

    done = steps.restore()

    assert state(steps) == ON
    assert done.power is Power.ON


@pytest.mark.long
def test_a_boot_with_the_wrong_soft_numa_does_not_count_and_the_next_one_is_right(
    tmp_path: Path, lab: LabFactory
) -> None:
    """A server that did not answer before the power-cycle is switched after it."""
    steps = prepared(tmp_path / "a", lab())
    context = steps.take()
    off = Arm.model_validate({"topology": "1x16", "soft_numa": "off"})

    wrong = Boot(context.study, off, steps.vm, Prediction((16,), "high", ""))
    said = SOFT_NUMA.mismatch(wrong, sql_server(steps.target), journal_of(context))

    assert said is not None
    assert state(steps) == SoftNuma(configured=False, in_use=True)
    steps.restore()
    assert state(steps) == ON


def test_a_server_that_cannot_be_read_at_the_start_is_not_changed(tmp_path: Path, lab: LabFactory) -> None:
    """What is not known cannot be restored: the plan blocks, and so does taking the VM over."""
    running = lab(vms=[{"name": "sql16", "power": "off"}])
    with pytest.raises(PreflightBlocked):
        prepared(tmp_path / "a", running)

    study = Study.model_validate(
        {"name": "s", "vms": ["sql16"], "vcpus": 16, "reference": "1x16", "arms": ARMS, "design": DESIGN}
    )
    target = Inventory(write_inventory(tmp_path, running)).targets(study.vms)["sql16"]
    with pytest.raises(PreflightBlocked):
        read_baseline(study, target)


def test_a_server_that_does_not_come_up_keeps_the_vms_lease_and_not_its_shape(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The shape is restored all the same; what could not be, and what to do, is said."""
    running = lab()
    arms = [{**arm, "topology": "2x8"} for arm in ARMS]
    steps = Steps.prepared(
        tmp_path / "a", running, reference="2x8", arms=arms, design=DESIGN, power={"sql_timeout_s": 3}
    )
    context = steps.take()
    boot(context, steps.shape(context))
    running.fault("sql_never", vm="sql16", times=0)
    steps.shape(context)

    with pytest.raises(NotAtBaseline):
        steps.restore()

    now = settings_now(running)
    assert (now["cores_per_socket"], now["power"]) == (4, "poweredOn")
    with steps.store.read() as connection:
        assert leases.get_lease(connection, steps.vm.vm_key) is not None
