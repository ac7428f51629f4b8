"""What an account may do, asked before anything is touched."""

from __future__ import annotations

from tests.vsphere.support import LabFactory, Login
from vnuma.domain.vm.role import needed_privileges
from vnuma.vsphere.read import find_vm
from vnuma.vsphere.surroundings import missing_privileges

NEEDED = needed_privileges(["numCPUs", "cpuAffinity", "memoryMB", "numa.vcpu.min"])


def test_a_restricted_account_lacks_what_it_was_not_given(lab: LabFactory, login: Login) -> None:
    """Exactly the privileges that a role lacks are named, in one round trip."""
    lacking = "VirtualMachine.Config.Resource", "VirtualMachine.Interact.PowerOff"
    given = [name for name in NEEDED if name not in lacking]
    account = {"user": "limited@vsphere.local", "privileges": ["System.View", "System.Read", *given]}
    session = login(lab(accounts=[account]), user=account["user"])
    ref = find_vm(session, "sql16")
    before = session.round_trips
    assert missing_privileges(session, ref, NEEDED) == lacking
    assert session.round_trips - before == 1
