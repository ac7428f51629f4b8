"""A readable copy of the lease for people in the vSphere Client: the custom attribute `vnuma`.

Where vCenter has custom attributes and the account may set them; a standalone ESXi host has none. The
lease itself is the mark (`lease_mark`): nothing is decided by the note, and a note that cannot be
written costs nothing.
"""

from __future__ import annotations

from pyVmomi import vim, vmodl

from vnuma.errors import PrivilegeMissing
from vnuma.vsphere.session import Session

ATTRIBUTE = "vnuma"


def write_note(session: Session, ref: vim.VirtualMachine, text: str) -> bool:
    """Set the note, defining the attribute if need be; whether it stands there now.

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
    """Empty the note, if there is one and the account may."""
    key = _key(session, ref)
    if key is None or not read_note(session, ref):
        return
    try:
        session.content.customFieldsManager.SetField(entity=ref, key=key, value="")
    except (PrivilegeMissing, vmodl.MethodFault):
        return


def read_note(session: Session, ref: vim.VirtualMachine) -> str:
    """What the note says; empty where there is none."""
    key = _key(session, ref)
    values = session.read(ref, ("customValue",)).values.get("customValue") or ()
    return next((str(item.value) for item in values if item.key == key), "")


def _key(session: Session, ref: vim.VirtualMachine) -> int | None:
    """The attribute's key on this kind of object."""
    fields = session.read(ref, ("availableField",)).values.get("availableField") or ()
    return next((int(field.key) for field in fields if field.name == ATTRIBUTE), None)
