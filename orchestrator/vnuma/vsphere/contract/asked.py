"""How an assumption is checked on a vCenter through one VM, and the lists of assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from pyVmomi import vim

from vnuma.domain.contract.belief import Beliefs, DiffersError, NotEvaluableError
from vnuma.domain.vm.change import Change, Edit, change_to
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Settings, Value
from vnuma.errors import ReadBackDiffers, ReconfigureRefused
from vnuma.vsphere.facts import paths, settings_of
from vnuma.vsphere.faults import name_behind
from vnuma.vsphere.read import read_vm
from vnuma.vsphere.session import Session, VmRef
from vnuma.vsphere.spec import specs_for, unmet

API = "https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/"

ACCEPTED = "accepted"
"""The observation for a change that was not refused."""

TOPOLOGY_HARDWARE = 20
"""The virtual hardware version from which a VM has automatic cores per socket and virtualNuma (ESXi 8.0)."""


def number(settings: Settings, name: str) -> int:
    """A numeric setting. Raises NotEvaluableError where it is not shown."""
    found = settings.get(name)
    if not isinstance(found, int):
        raise NotEvaluableError(f"{name} is not shown")
    return found


def settings_now(session: Session, ref: VmRef) -> Settings:
    """A VM's settings, without the location that `read_vm` reads."""
    return settings_of(session.read(ref, paths()).values)


def cpus_for(settings: Settings) -> tuple[int, ...]:
    """As many logical CPUs as the VM has vCPUs."""
    return tuple(range(number(settings, "numCPUs")))


class KeyStays(ReconfigureRefused):
    """An extraConfig key could not be removed at once; the restore does it."""


class Writer(Protocol):
    """Changes the VM under a lease, recorded in advance so that it is always restored."""

    def submit(self, edits: Iterable[Edit], spec: vim.vm.ConfigSpec) -> None:
        """Send one reconfigure that may make these edits. Raises ReconfigureRefused."""

    def fence(self) -> None:
        """Raise LeaseLost or Interrupted where no further request is allowed."""

    def reconfigure(self, change: Change) -> VmFacts:
        """Make a change and read the VM back. Raises ReconfigureRefused, ReadBackDiffers."""

    def take_back(self, key: str, before: Value) -> None:
        """Reset an extraConfig key that a typed field owns, so that no baseline has it.

        Also allowed where `fence` raises. Raises KeyStays, LeaseLost.
        """


@dataclass(frozen=True)
class AskedVm:
    """One VM at a vCenter or ESXi host, for reading only."""

    session: Session
    ref: VmRef

    def values(self, *paths: str) -> dict[str, Any]:
        """The VM's properties that are set."""
        return dict(self.session.read(self.ref, paths).values)

    def value(self, path: str) -> Any:
        """One property; None if unset."""
        return self.values(path).get(path)

    def vm(self) -> VmFacts:
        return read_vm(self.session, self.ref)

    def settings(self) -> Settings:
        return settings_now(self.session, self.ref)

    def host(self) -> vim.HostSystem:
        """The VM's host. Raises NotEvaluableError."""
        found: vim.HostSystem | None = self.value("runtime.host")
        if found is None:
            raise NotEvaluableError("the VM's host is not shown")
        return found

    def of_host(self, path: str) -> Any:
        """A property of the VM's host. Raises NotEvaluableError."""
        found = self.session.read(self.host(), (path,)).values.get(path)
        if found is None:
            raise NotEvaluableError(f"the host's {path} is not shown")
        return found

    def require_topology_fields(self) -> None:
        """Raise NotEvaluableError where the VM has no automatic topology."""
        found = self.vm().hardware_version
        if found < TOPOLOGY_HARDWARE or not self.session.knows(vim.vm.ConfigSpec, "virtualNuma"):
            raise NotEvaluableError(f"virtual hardware {found}, API {self.session.about.api_version}")


@dataclass(frozen=True)
class ChangedVm(AskedVm):
    """The same VM with permission to change it: a test clone that is restored afterwards."""

    writer: Writer

    def asked_for(self, **desired: Value) -> Settings:
        """The VM's settings after a change to these.

        Raises DiffersError if it is refused or reads back differently, NotEvaluableError if the API lacks it.
        """
        change = change_to(self.settings(), desired)
        try:
            return self.writer.reconfigure(change).settings
        except ReadBackDiffers as error:
            now = unmet(change, self.settings())
            seen = ", ".join(f"{edit.setting} reads {edit.before} instead of {edit.after}" for edit in now)
            raise DiffersError(seen or "not immediately as requested") from error
        except ReconfigureRefused as error:
            if error.__cause__ is None:  # never sent
                raise NotEvaluableError(f"API {self.session.about.api_version}") from error
            raise DiffersError(f"{name_behind(error)} instead of {ACCEPTED}") from error

    def refusal(self, **desired: Value) -> str:
        """The name of the fault that refuses a change to these, or `accepted`."""
        now = self.settings()
        edits = tuple(Edit(name, now.get(name), value) for name, value in desired.items())
        (spec,) = specs_for(Change(edits), now)
        seen = self.refusal_of(edits, spec)
        if seen == ACCEPTED:  # later assumptions need the original VM
            with suppress(DiffersError, NotEvaluableError):
                self.asked_for(**{name: now.get(name) for name in desired})
        return seen

    def refusal_of(self, edits: Iterable[Edit], spec: vim.vm.ConfigSpec) -> str:
        """The same for the caller's own request, which may make these edits."""
        try:
            self.writer.submit(edits, spec)
        except ReconfigureRefused as error:
            return name_behind(error)
        return ACCEPTED


READING: Beliefs[AskedVm] = Beliefs()
"""Checked on any VM: nothing is changed."""

WHILE_OFF: Beliefs[ChangedVm] = Beliefs()
"""Checked on a test clone that has been shut down."""

WHILE_ON: Beliefs[ChangedVm] = Beliefs()
"""Checked on it after power-on, with the changes made while it was off."""
