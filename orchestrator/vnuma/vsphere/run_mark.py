"""The lease on the VM itself: extraConfig `vnuma.run`, written by compare-and-set, and a note for people."""

from __future__ import annotations

from dataclasses import dataclass

from pyVmomi import vim, vmodl

from vnuma.errors import PrivilegeMissing, ReadBackDiffers
from vnuma.vsphere.apply import no_fence, submit
from vnuma.vsphere.facts import LEASE_KEY, extra_config
from vnuma.vsphere.session import Session

__all__ = ["LEASE_KEY", "Mark", "clear_note", "read_mark", "read_note", "write_mark", "write_note"]

_ATTRIBUTE = "vnuma"


@dataclass(frozen=True)
class Mark:
    """The VM's mark, None without one, and its version at that moment."""

    text: str | None
    change_version: str


def read_mark(session: Session, ref: vim.VirtualMachine) -> Mark:
    """Read the VM's mark and version at once. Raises PrivilegeMissing, VmNotFound."""
    values = session.read(ref, ("config.extraConfig", "config.changeVersion")).values
    with session.understanding():
        return Mark(
            extra_config(values.get("config.extraConfig") or ()).get(LEASE_KEY),
            values["config.changeVersion"],
        )


def write_mark(session: Session, ref: vim.VirtualMachine, text: str | None, change_version: str) -> Mark:
    """Set the mark, or remove it with None, if the VM still has `change_version`.

    Of two writers with the same version, one gets ChangedMeanwhile. Raises ReconfigureRefused and
    ReadBackDiffers too.
    """
    option = vim.option.OptionValue(key=LEASE_KEY, value=text or "")
    spec = vim.vm.ConfigSpec(changeVersion=change_version, extraConfig=[option])
    submit(session, ref, spec, fence=no_fence)
    mark = read_mark(session, ref)
    if mark.text != (text or None):
        raise ReadBackDiffers(
            f"vSphere accepted the mark on {session.transport.name_of(ref)}, but it reads back differently.",
            fix="Check the VM's advanced setting vnuma.run.",
        )
    return mark


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
            key = manager.AddCustomFieldDef(name=_ATTRIBUTE, moType=vim.VirtualMachine).key
        manager.SetField(entity=ref, key=key, value=text)
    except (PrivilegeMissing, vmodl.MethodFault):
        return False
    return True


def clear_note(session: Session, ref: vim.VirtualMachine) -> None:
    """Empty the note, if it exists and the account may."""
    if read_note(session, ref):
        write_note(session, ref, "")


def read_note(session: Session, ref: vim.VirtualMachine) -> str:
    """The note's text; empty without one."""
    key = _key(session, ref)
    values = session.read(ref, ("customValue",)).values.get("customValue") or ()
    return next((str(item.value) for item in values if item.key == key), "")


def _key(session: Session, ref: vim.VirtualMachine) -> int | None:
    """The attribute's key for this kind of object."""
    fields = session.read(ref, ("availableField",)).values.get("availableField") or ()
    return next((int(field.key) for field in fields if field.name == _ATTRIBUTE), None)
