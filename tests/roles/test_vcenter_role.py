"""The playbook that gives the study's account its role, on the lab."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import LabFactory
from tests.support.playbook import Played, play
from tests.support.site import write_inventory
from tests.vsphere.support import vcenter_of
from vnuma.domain.vm.role import needed_privileges
from vnuma.domain.vm.setting import TYPED
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm
from vnuma.vsphere.surroundings import missing_privileges

STUDY = "study@vsphere.local"


def test_check_apply_apply_again(lab: LabFactory, tmp_path: Path) -> None:
    """Check mode tells and gives nothing; then the account holds all, on that VM alone; then nothing."""
    vms = [{"name": "sql16"}, {"name": "other", "memory_gb": 1}]
    running = lab(accounts=[{"user": STUDY, "privileges": []}], vms=vms)
    inventory = write_inventory(tmp_path, running, ["sql16"], user=STUDY)
    admin = {
        "vnuma_admin_user": running.vcenter.user,
        "vnuma_admin_password": {"file": str(tmp_path / "password")},
    }
    extra = ("-e", json.dumps(admin))
    wanted = needed_privileges(TYPED)

    checked = play(tmp_path, inventory, "vnuma.vnuma.vcenter_role", "--check", *extra).only("vcenter_role")
    assert checked.changed
    assert checked["changes"]["privileges"] == sorted(wanted)

    given = play(tmp_path, inventory, "vnuma.vnuma.vcenter_role", *extra).only("vcenter_role")
    assert given.changed
    assert (given["changes"], given["diff"]) == (checked["changes"], checked["diff"])
    with connect(vcenter_of(running, user=STUDY)) as session:
        assert missing_privileges(session, find_vm(session, "sql16"), wanted) == ()
        assert missing_privileges(session, find_vm(session, "other"), wanted) == wanted

    assert not play(tmp_path, inventory, "vnuma.vnuma.vcenter_role", *extra).only("vcenter_role").changed


def test_an_account_that_logs_in_by_a_token_is_named(lab: LabFactory, tmp_path: Path) -> None:
    """The administrator's password takes the token's place; who gets the role has to be said."""
    running = lab(accounts=[{"user": STUDY, "privileges": []}], vms=[{"name": "sql16"}])
    token = {"env": "OF_NO_USE_HERE"}
    inventory = write_inventory(tmp_path, running, user="", password=None, token=token)
    without = inventory.read_text(encoding="utf-8").replace('"user": "", "password": null, ', "")
    inventory.write_text(without, encoding="utf-8")
    admin: dict[str, object] = {
        "vnuma_admin_user": running.vcenter.user,
        "vnuma_admin_password": {"file": str(tmp_path / "password")},
    }

    def checked(**more: str) -> Played:
        extra = ("-e", json.dumps(admin | more))
        return play(tmp_path, inventory, "vnuma.vnuma.vcenter_role", "--check", *extra)

    assert "vnuma_role_principal" in checked().text
    assert checked(vnuma_role_principal=STUDY).only("vcenter_role").changed
