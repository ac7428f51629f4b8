"""Drift against a design: what differs, and who changed it by the events of the vCenters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from pyVmomi import vmodl

from vnuma.checks.against_design import Difference, Drift, DriftedVm, compare_with_design
from vnuma.domain.vm.change import Author, ConfigEvent, last_change
from vnuma.domain.vm.estate import Estate
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target
from vnuma.engine.design_check.check import Filters
from vnuma.engine.design_check.estates import vcenters_of
from vnuma.errors import InputError, VnumaError
from vnuma.estate import snapshot
from vnuma.estate.design import read_design
from vnuma.vsphere.config_events import MOST_EVENTS, days_kept, read_config_events
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.faults import describe

_FILE = "a file has no events: check the vCenter itself"
_NOT_READ = f"only the newest {MOST_EVENTS:,} events of the VM were read"
_NO_LONGER = "the vCenter is not in the inventory"


VmEvents = tuple[list[ConfigEvent], str]
"""A VM's configuration events, newest first; and as text, how far back they reach."""


def read_designs(files: Sequence[Path]) -> list[Estate]:
    """The designs, or earlier snapshots. Raises InputError, also where a file has no VM to compare."""
    found = [estate for file in files for estate in _read(file)]
    if not any(estate.vms for estate in found):
        why = next((item.why for estate in found for item in estate.unseen), "it has no VM")
        raise InputError(
            f"No VM to compare with in {files[0]}: {why}.", fix="Name the design that planned them."
        )
    return found


def _read(file: Path) -> Sequence[Estate]:
    """A JSON file that says so is a snapshot; everything else is left to the readers of designs."""
    document = None
    if file.suffix.lower() == ".json":
        with suppress(InputError):
            document = snapshot.read_json(file)
    if not snapshot.is_snapshot(document):
        return [read_design(file)]
    found = snapshot.from_document(document, file)
    return [replace(estate, source=f"{estate.source} in {file.name}") for estate in found]


def drift(
    designs: Sequence[Estate], present: Sequence[Estate], filters: Filters, site: Inventory | None
) -> Drift:
    """What differs, with its authors where `site` leads to the vCenters that know them."""
    found = compare_with_design(
        designs, present, filters.admit, lambda name: not filters.name or fnmatchcase(name, filters.name)
    )
    events: dict[str, VmEvents | str] = {}
    if site is not None and found.vms:
        sources = {vm.source for vm in found.vms}
        for target in vcenters_of(site):
            if target.hypervisor.host in sources:
                known = {key for key, one in events.items() if not isinstance(one, str)}
                events |= _ask(target, [vm for vm in found.vms if vm.facts.key not in known])
    without = _FILE if site is None else _NO_LONGER
    vms = tuple(_with_authors(vm, events.get(vm.facts.key, without)) for vm in found.vms)
    return replace(found, vms=vms)


def _ask(target: Target, vms: Sequence[DriftedVm]) -> dict[str, VmEvents | str]:
    """The events, by key, of those VMs that are this vCenter's, or why they were not read."""
    events: dict[str, VmEvents | str] = {}
    try:
        with connect(vcenter(target)) as session:
            mine = [vm for vm in vms if vm.facts.vcenter_uuid == session.about.uuid]
            kept = _kept(days_kept(session)) if mine else ""
            for vm in mine:
                events[vm.facts.key] = _events(session, vm, kept)
    except VnumaError as error:
        why = f"events could not be read: {error.what}"
        events |= {
            vm.facts.key: why
            for vm in vms
            if vm.source == target.hypervisor.host and vm.facts.key not in events
        }
    return events


def _events(session: Session, vm: DriftedVm, kept: str) -> VmEvents | str:
    try:
        newest, older = read_config_events(session, vm.facts.moid)
    except vmodl.MethodFault as fault:
        error = session.translate(fault)
        return f"events could not be read: {error.what if error else describe(fault)}"
    return newest, _NOT_READ if older else kept


def _kept(days: int | None) -> str:
    if days is None:
        return "it does not report how long it keeps events"
    return f"it keeps events for {days} days" if days else "it keeps all events"


def _with_authors(vm: DriftedVm, events: VmEvents | str) -> DriftedVm:
    def author(one: Difference) -> Author | str:
        if isinstance(events, str):
            return events
        return last_change(one.setting, one.now, *events)

    return replace(vm, differences=tuple(replace(one, author=author(one)) for one in vm.differences))
