"""What the account may do on a VM, asked before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable

from pyVmomi import vim

from vnuma.vsphere.session import Session


def missing_privileges(
    session: Session, ref: vim.ManagedEntity, privileges: Iterable[str]
) -> tuple[str, ...]:
    """Those of the privileges that the logged-in account does not have on an object, sorted.

    Raises PrivilegeMissing when the account may not even ask.
    """
    wanted = sorted(set(privileges))
    answers = session.content.authorizationManager.HasPrivilegeOnEntities([ref], session.key, wanted)
    granted = {entry.privId for answer in answers for entry in answer.privAvailability if entry.isGranted}
    return tuple(name for name in wanted if name not in granted)
