"""What a boot shows: vSphere from outside, and the guest from inside."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from vnuma.domain.topology.evidence import LogEvidence
from vnuma.domain.vm.endpoint import VmSide
from vnuma.domain.vm.facts import GuestTopology, HostFacts, VmFacts
from vnuma.engine.access.context import VmContext
from vnuma.engine.cell import evidence
from vnuma.engine.instance import sql_identity
from vnuma.engine.lease.attempt import Attempt
from vnuma.engine.lease.identity import require_own_host
from vnuma.engine.lease.vcenter_retry import on_hypervisor
from vnuma.logs.errorlog import ErrorLog
from vnuma.vsphere import read, uptime
from vnuma.vsphere.connect import Session, VmRef


@dataclass(frozen=True)
class VsphereView:
    """What vSphere shows of a boot: `powered_on_at` by vCenter's clock, `boot_time` by the host's."""

    vm: VmFacts
    host: HostFacts
    powered_on_at: datetime
    boot_time: datetime
    side: VmSide
    noted: sql_identity.PowerOn | None
    log: evidence.Fetched
    bios_uuid: str
    """The firmware's UUID, which the guest shows too."""


@dataclass(frozen=True)
class GuestView:
    """What the guest shows of a boot, and what a vmware.log proves of it. `boot` are facts for the store."""

    guest: GuestTopology
    boot: Mapping[str, object]
    start: ErrorLog | None
    log: LogEvidence


def looked_at(context: VmContext, attempt: Attempt) -> VsphereView | None:
    """What vSphere shows of this boot; None where nothing was booted. Raises HostChanged."""
    looked = on_hypervisor(
        context, attempt, "guest_ready", lambda session, ref, _: _look(context, attempt, session, ref)
    )
    if looked:
        require_own_host(context.vm, looked.vm.host_name)
    return looked


def _look(context: VmContext, attempt: Attempt, session: Session, ref: VmRef) -> VsphereView:
    vm, host = read.read_vm_on_host(session, ref)
    side, booted = uptime.read_vm_side(session, ref), uptime.boot_time(session, ref)
    noted = sql_identity.noted_power_on(context, attempt)
    at = noted.at if noted and noted.at else uptime.powered_on_at(session, ref)
    if noted and noted.at:
        side = replace(side, age_s=uptime.seconds_since(session, at), at=time.monotonic())
    fetched = evidence.fetch(session, vm, context.study.evidence)
    return VsphereView(vm, host, at, booted, side, noted, fetched, read.bios_uuid(session, ref))


def log_of(context: VmContext, attempt: Attempt, looked: VsphereView, guest: GuestTopology) -> LogEvidence:
    """What this boot's vmware.log proves, beside the guest's own view."""
    if looked.log.file is None:
        return LogEvidence(why_not=looked.log.why_not)
    age_s = looked.side.age_s
    return evidence.evaluate(context.store, context.vm.id, attempt.id, looked.log.file, age_s, guest)
