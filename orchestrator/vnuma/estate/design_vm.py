"""A designed VM as facts: what every source of designs has alike, and what none of them can say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from vnuma.checks.subject import HARDWARE
from vnuma.domain.vm.estate import Declared, Estate, EstateVm, Unseen
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power, Value
from vnuma.errors import InputError
from vnuma.estate.plausible import implausible_vm

NO_HOST = "a design names no host: give one with --host-nodes"


@dataclass(frozen=True)
class DesignedVm:
    """One VM of a design. `hardware` is None, with a reason in `absent`, where the design leaves it open."""

    address: str
    """Identifies it in the design."""
    name: str
    hardware: int | None
    settings: Mapping[str, Value]
    absent: Mapping[str, str] = field(default_factory=dict)
    guest_id: str = ""
    declared: Declared | None = None

    def facts(self, source: str) -> EstateVm:
        """As the rules read it: off, and on no host."""
        facts = VmFacts(
            moid=self.address,
            name=self.name,
            path=self.address,
            vcenter_uuid=source,
            instance_uuid=self.address,
            hardware_version=self.hardware or 0,
            guest_id=self.guest_id,
            guest_full_name="",
            power=Power.OFF,
            host_moid="",
            host_name="",
            tools_running=False,
            change_version="",
            settings=dict(self.settings),
        )
        return EstateVm(facts, {"host": NO_HOST, **self.absent}, declared=self.declared)


def estate_of_designs(
    path: Path,
    kind: Literal["terraform", "vmx", "ovf"],
    product: str,
    designed: Iterable[DesignedVm],
    unseen: Iterable[Unseen] = (),
) -> Estate:
    """The VMs of one file; one that no machine can be is named instead of checked."""
    vms, left = [], list(unseen)
    for one in designed:
        vm = one.facts(f"{kind}:{path.name}")
        why = next(implausible_vm(vm.facts), "")
        if why:
            left.append(Unseen("vm", one.address, why))
        else:
            vms.append(vm)
    return Estate(
        source=path.name,
        kind=kind,
        read_at=datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        product=product,
        version="",
        vms=tuple(vms),
        clusters=(),
        unseen=tuple(left),
    )


def open_hardware(hardware: int | None, why: str) -> dict[str, str]:
    """The reason for a hardware version that a design leaves open; nothing where it names one."""
    return {} if hardware is not None else {HARDWARE: why}


def bounded_bytes(path: Path, most: int, what: str) -> bytes:
    """A file's content. Raises InputError for one that cannot be read, or is larger than its kind ever is."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).", fix="Check the name.") from error
    if len(data) > most:
        raise InputError(
            f"{path} is larger than {most // 1_000_000} MB: it is not {what}.", fix="Name another file."
        )
    return data
