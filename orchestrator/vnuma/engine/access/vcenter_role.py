"""Give the study account its role on a VM, as an administrator, or show what would change."""

from __future__ import annotations

from typing import Any

from vnuma.domain.vm.role import ROLE
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.target import Target
from vnuma.errors import EnvironmentProblem
from vnuma.vsphere import read, surroundings
from vnuma.vsphere.connect import Session, connect

Document = dict[str, Any]

PRIVILEGES = frozenset(ROLE)


def give_role(target: Target, name: str, principal: str, *, check: bool) -> Document:
    """Give a user the role on the target's VM, and Read-only above it; with `check`, change nothing.

    `target.vcenter` logs in as an administrator. Raises PrivilegeMissing, and EnvironmentProblem when the
    user still lacks a privilege afterwards.
    """
    with connect(vcenter(target)) as session:
        ref, root = read.find_vm(session, target.vm), session.content.rootFolder
        role = surroundings.find_role(session, name)
        lacking = sorted(PRIVILEGES - (set(role.privilege) if role else set()))
        given = role is not None and surroundings.role_on(session, ref, principal) == role.roleId
        sees = surroundings.role_on(session, root, principal) is not None
        changes = {
            "privileges": lacking,
            "permission": None if given else f"{name} for {principal} on {target.name}",
            "read_only": None if sees else f"Read-only for {principal} on the root folder",
        }
        changed = bool(lacking) or not given or not sees
        if changed and not check:
            _give(session, target, name, principal, sees=sees)
    before = sorted(PRIVILEGES.intersection(role.privilege)) if role else []
    return {
        "changed": changed,
        "changes": changes,
        "diff": {
            "before": {"role": before, "given": given, "read_only": sees},
            "after": {"role": sorted(PRIVILEGES), "given": True, "read_only": True},
        },
    }


def _give(session: Session, target: Target, name: str, principal: str, *, sees: bool) -> None:
    ref, root = read.find_vm(session, target.vm), session.content.rootFolder
    role = surroundings.save_role(session, name, PRIVILEGES)
    surroundings.give(session, ref, principal, role, propagate=False)
    reading = surroundings.find_role(session, surroundings.READ_ONLY)
    if reading and not sees:
        surroundings.give(session, root, principal, reading, propagate=True)
    missing = surroundings.privileges_lacking(session, ref, principal, PRIVILEGES)
    if missing:
        raise EnvironmentProblem(
            f"{principal} has the role {name} on {target.name}, but vCenter reports these privileges "
            f"as missing: {', '.join(missing)}.",
            fix="Look at the VM's Permissions in vCenter: another rule there may override the role.",
        )
