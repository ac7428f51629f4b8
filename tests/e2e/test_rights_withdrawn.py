"""What an account may not do any more ends its VM's cells at once, until it may again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.looking import give_rights, settings_now, withdraw_rights
from tests.support.site import write_inventory, write_study
from vnuma.domain.vm.role import needed_privileges
from vnuma.domain.vm.setting import TYPED
from vnuma.store import attempts, leases, runs
from vnuma.store.open import open_store

STUDY = "study@vsphere.local"
SHAPE = "VirtualMachine.Config.CPUCount"


def ends(home: Path) -> dict[str, list[str]]:
    """By VM, how each of its attempts ended: the reason, or `valid`."""
    with open_store(f"sqlite:///{home / 'vnuma.db'}").read() as connection:
        run = runs.get_run(connection, "small.1")
        names = {vm.id: vm.name for vm in leases.vms_of_run(connection, run.id)}
        found: dict[str, list[str]] = {name: [] for name in names.values()}
        for line in attempts.lines_of_run(connection, run.id):
            found[names[line.vm_id]].append(str(line.reason or line.outcome))
        return found


@pytest.mark.long
def test_a_withdrawn_privilege_ends_its_vm_with_one_attempt_and_a_resumed_run_tries_again(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """The other VM continues; the attempt does not count for its cell, of which the study allows one."""
    hosts = [{"name": "esx01"}, {"name": "esx02"}]
    machines = [{"name": f"sql-{host[-1]}", "host": host, "memory_gb": 32} for host in ("esx01", "esx02")]
    held = ["System.View", "System.Read", *needed_privileges(TYPED)]
    account = {"user": STUDY, "privileges": [name for name in held if name != SHAPE]}
    running = lab(hosts=hosts, vms=machines, accounts=[account])
    give_rights(running, STUDY, [SHAPE], ["sql-1", "sql-2"])
    before = [settings_now(running, name) for name in ("sql-1", "sql-2")]
    inventory = write_inventory(tmp_path, running, user=STUDY)
    study = write_study(tmp_path, vms=["sql-1", "sql-2"])
    created = vnuma("run", study, "-i", inventory, "--create-only")
    assert created.code == 0, created.text

    withdraw_rights(running, STUDY, "sql-2")
    ran = vnuma("run", "--resume", "small.1")

    assert ran.code == 6, ran.text
    assert ends(vnuma_home) == {"sql-1": ["valid", "valid"], "sql-2": ["privilege_missing"]}
    assert [settings_now(running, name) for name in ("sql-1", "sql-2")] == before
    assert f"{STUDY} lacks the privilege {SHAPE} on sql-2." in ran.err

    give_rights(running, STUDY, [SHAPE], ["sql-2"])
    resumed = vnuma("run", "--resume", "small.1")

    assert resumed.code == 0, resumed.text
    assert ends(vnuma_home)["sql-2"] == ["privilege_missing", "valid", "valid"]
    assert [settings_now(running, name) for name in ("sql-1", "sql-2")] == before
