"""The running lab as an inventory of Ansible's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.playbook import play, play_roles
from tests.support.site import write_inventory
from vnuma import lab as vnuma_lab
from vnuma.assets import asset
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target


def test_the_running_lab_s_vms_are_hosts(tmp_path: Path, lab_binary: Path) -> None:
    """Commands and playbooks find them in it, with references for passwords."""
    state = vnuma_lab.up()
    try:
        file = asset("inventories/lab/lab.vnuma.yml")
        targets = Inventory(file).targets()
        ended = play_roles(tmp_path, file, {"vm_power": {}}, "-vvvv")
        password = state.password_file.read_text(encoding="utf-8").strip()
    finally:
        vnuma_lab.down()

    assert {name: target.vm for name, target in targets.items()} == {"sql16": "/DC0/vm/sql16"}
    assert targets["sql16"].hypervisor.secret.file == str(state.password_file)
    assert ended.only("vm_power").host == "sql16"
    assert password not in ended.text


@pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is not installed")
def test_the_running_lab_s_machines_are_hosts_of_their_own(lab_binary: Path) -> None:
    """Reached by SSH with a key, as what no vCenter knows; `lab up` says where, and what is next."""
    assert vnuma("lab", "up", "closson2009").code == 0
    try:
        targets = Inventory(asset("inventories/lab/lab.vnuma.yml")).targets(["xeon5500"])
    finally:
        vnuma_lab.down()

    assert targets == {"xeon5500": Target(name="xeon5500", vm="xeon5500")}


def test_without_a_lab_the_command_that_starts_one_is_named(tmp_path: Path) -> None:
    """An empty inventory says why it is empty."""
    ended = play(tmp_path, asset("inventories/lab/lab.vnuma.yml"), "vnuma.vnuma.dataset")

    assert "No lab is running. Start one: vnuma lab up" in " ".join(ended.text.split())
    assert ended.tasks == ()


def test_an_inventory_may_be_read_again(tmp_path: Path, lab: LabFactory) -> None:
    """A command that looks up one VM after the other gets no warning from Ansible (here: an error)."""
    inventory = write_inventory(tmp_path, lab())

    assert Inventory(inventory).targets() == Inventory(inventory).targets(["sql16"])
