"""A readable copy of the lease in the vSphere Client: the custom attribute `vnuma`.

Only where vCenter has custom attributes and the account may set them; a standalone ESXi host has none. The
mark (`lease_mark`) is the lease itself. The note decides nothing, and failing to write it has no consequence.
"""

from __future__ import annotations

from pyVmomi import vim, vmodl

from vnuma.errors import PrivilegeMissing
from vnuma.vsphere.session import Session

ATTRIBUTE = "vnuma"


def write_note(session: Session, ref: vim.VirtualMachine, text: str) -> bool:
    """Set the note, defining the attribute if necessary; returns whether it is set.

    Needs Global.SetCustomField, and once Global.ManageCustomFields.
    """
    manager = session.content.customFieldsManager
    if manager is None:
        return False
    try:
        key = _key(session, ref)
        if key is None:
            key = manager.AddCustomFieldDef(name=ATTRIBUTE, moType=vim.VirtualMachine).key
        manager.SetField(entity=ref, key=key, value=text)
    except (PrivilegeMissing, vmodl.MethodFault):
        return False
    return True


def clear_note(session: Session, ref: vim.VirtualMachine) -> None:
    """Empty the note, if it exists and the account may."""
    key = _key(session, ref)
    if key is None or not read_note(session, ref):
        return
    try:
        session.content.customFieldsManager.SetField(entity=ref, key=key, value="")
    except (PrivilegeMissing, vmodl.MethodFault):
        return


def read_note(session: Session, ref: vim.VirtualMachine) -> str:
    """The note's text; empty without one."""
    key = _key(session, ref)
    values = session.read(ref, ("customValue",)).values.get("customValue") or ()
    return next((str(item.value) for item in values if item.key == key), "")


def _key(session: Session, ref: vim.VirtualMachine) -> int | None:
    """The attribute's key for this kind of object."""
    fields = session.read(ref, ("availableField",)).values.get("availableField") or ()
    return next((int(field.key) for field in fields if field.name == ATTRIBUTE), None)
