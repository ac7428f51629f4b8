"""vCenter's events of a VM's reconfigurations: who changed it, when and what. Read-only.

A collector's latest page has the newest events; it reads older ones from there
(https://developer.broadcom.com/xapis/virtual-infrastructure-json-api/latest/sdk/vim25/release/EventHistoryCollector/moId/ReadPreviousEvents/post).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from typing import Any

from pyVmomi import vim, vmodl

from vnuma.domain.vm.change import ConfigEvent
from vnuma.domain.vm.setting import DERIVED, HARDWARE, TYPED, SettingSpec, Value, ValueKind
from vnuma.vsphere.facts import VALUES
from vnuma.vsphere.session import Session

_PAGE = 100
MOST_EVENTS = 10_000
"""Most reconfigurations read of one VM: backups make several a day, and vCenter keeps 30 days by default."""

_KINDS = ("VmReconfiguredEvent", "VmUpgradeCompleteEvent")


def read_config_events(
    session: Session, moid: str, most: int = MOST_EVENTS
) -> tuple[list[ConfigEvent], bool]:
    """A VM's latest `most` events of this kind, newest first, and whether there are older ones.

    Only events that vCenter still has and shows to this account. Raises MethodFault without the right to ask,
    VCenterUnreachable for an invalid answer.
    """
    wanted = vim.event.EventFilterSpec(
        entity=vim.event.EventFilterSpec.ByEntity(entity=session.vm(moid), recursion="self"),
        eventTypeId=list(_KINDS),
        disableFullMessage=True,
    )
    collector: Any = session.content.eventManager.CreateCollectorForEvents(wanted)
    try:
        with session.understanding():
            found = _newest(collector, most + 1)
            return [_event(event) for event in found[:most]], len(found) > most
    finally:
        with suppress(vmodl.MethodFault):
            collector.DestroyCollector()


def _newest(collector: Any, most: int) -> list[Any]:
    """The newest events, newest first, by key: the view may start within or before the latest page."""
    collector.ResetCollector()
    found = {event.key: event for event in collector.latestPage or ()}
    while len(found) < most:
        page = {event.key: event for event in collector.ReadPreviousEvents(_PAGE) or ()}
        if not page.keys() - found.keys():
            break
        found |= page
    return sorted(found.values(), key=lambda event: (event.createdTime, event.key), reverse=True)[:most]


def days_kept(session: Session) -> int | None:
    """How many days vCenter keeps events; 0: forever; None: unknown.

    https://techdocs.broadcom.com/us/en/vmware-cis/vsphere/vsphere/8-0/vcenter-configuration-8-0.html
    """
    found: dict[str, Any] = {}
    for name in ("event.maxAge", "event.maxAgeEnabled"):
        try:
            options = session.content.setting.QueryOptions(name)
        except (vmodl.MethodFault, AttributeError):
            return None
        found |= {option.key: option.value for option in options or ()}
    if found.get("event.maxAgeEnabled") is False:
        return 0
    days = found.get("event.maxAge")
    return days if isinstance(days, int) and days > 0 else None


def _event(event: Any) -> ConfigEvent:
    at = event.createdTime.astimezone(UTC)
    if isinstance(event, vim.event.VmUpgradeCompleteEvent):
        return ConfigEvent(at, event.userName, {HARDWARE: int(event.version.rpartition("-")[2])})
    listed = event.configChanges
    changes = None if listed is None else f"{listed.modified or ''}\n{listed.added or ''}"
    deleted = (listed.deleted or "") if listed else ""
    return ConfigEvent(at, event.userName, requested_settings(event.configSpec), changes, deleted)


def requested_settings(spec: vim.vm.ConfigSpec) -> Mapping[str, Value]:
    """The settings in a request."""
    wrote: dict[str, Value] = {
        setting.name: value
        for setting in TYPED.values()
        if setting.name not in DERIVED and (value := _requested(spec, setting)) is not None
    }
    for option in spec.extraConfig or ():
        wrote[option.key] = str(option.value) or None
    if spec.version:
        wrote[HARDWARE] = int(spec.version.rpartition("-")[2])
    return wrote


def _requested(spec: vim.vm.ConfigSpec, setting: SettingSpec) -> Value:
    """One setting of a request; None where it has none. Numbers stay in the order requested."""
    field, part = setting.request
    asked = getattr(spec, field)
    value = getattr(asked, part) if part and asked is not None else asked
    if value is None or setting.kind is ValueKind.CPUS:
        return None if value is None else tuple(value)
    return str(value.level) if setting.kind is ValueKind.SHARES else VALUES[setting.kind](value)
