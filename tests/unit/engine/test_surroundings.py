"""Findings about what is around a VM: each with a case that has it, and none in a clean one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest

from tests.support.hosts import host_of, vm_of
from tests.support.studies import study
from vnuma.domain.study.study import Acceptable
from vnuma.domain.vm.surroundings import Limit, ServerUse, Surroundings
from vnuma.engine.preflight.findings import Finding
from vnuma.engine.preflight.preflight import accepted, passthrough_findings, server_use_findings, vm_findings

VM_CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("P08", "block", {"fault_tolerance": True}),
    ("P09", "block", {"running_tasks": ("VirtualMachine.migrate",)}),
    ("P10", "warn", {"neighbours": ("a", "b")}),
    ("P11", "warn", {"high_availability": True}),
    ("P41", "warn", {"admission_control": True}),
    ("P38", "warn", {"heartbeat_watched": True}),
    ("P12", "warn", {"change_tracking": True}),
    ("P13", "block", {"shared_disks": ("Hard disk 2",)}),
    ("P14", "block", {"raw_disks": ("Hard disk 3",)}),
    ("P15", "warn", {"passthrough": ("PCI device 0",)}),
    ("P16", "warn", {"virtual_tpm": True}),
    ("P16", "warn", {"encrypted": True}),
    ("P17", "warn", {"managed_by": "com.vmware.vcDr"}),
    ("P18", "block", {"free_licence": True}),
    ("P37", "block", {"limits": (Limit("memory", 4096, 65536, of_pool=True),)}),
    ("P37", "warn", {"limits": (Limit("CPU", 2000, 36800, of_pool=False),)}),
    ("P36", "block", {"host_trouble": "esx01 is in maintenance mode."}),
    ("P19", "warn", {"moved_minutes_ago": 3.0}),
]
SERVER_CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("P20", "warn", {"not_seen": ("log shipping",)}),
    ("P21", "block", {"availability_groups": True, "replica_databases": ("sales",)}),
    ("P21", "warn", {"availability_groups": True}),
    ("P22", "block", {"clustered": True}),
    ("P23", "block", {"replicated": ("orders",)}),
    ("P24", "block", {"log_shipped": ("stock",)}),
    ("P25", "block", {"backups": ("BACKUP DATABASE sales",)}),
    ("P26", "block", {"sessions": ("SSMS", "SSMS")}),
    ("P26", "warn", {"sessions": ("agent",), "test_clone": True}),  # it harms nobody on a clone
    ("P27", "block", {"machine_name": "OTHER"}),
]


def on_vm(**seen: Any) -> list[Finding]:
    """Findings of a VM with these things around it."""
    return list(vm_findings("sql16", "esx01", Surroundings(**seen)))


def on_server(guest_name: str | None = "SQL16", *, test_clone: bool = False, **use: Any) -> list[Finding]:
    """Findings of a server that is used so."""
    found = ServerUse(**({"machine_name": "SQL16"} | use))
    return list(server_use_findings("sql16", guest_name, found, test_clone=test_clone))


@pytest.mark.parametrize(
    ("find", "rule", "severity", "seen"),
    [*((on_vm, *case) for case in VM_CASES), *((on_server, *case) for case in SERVER_CASES)],
)
def test_what_is_around_a_vm_and_on_its_server_is_found(
    find: Callable[..., list[Finding]], rule: str, severity: str, seen: dict[str, Any]
) -> None:
    """One finding for one thing, with what to do about it."""
    (finding,) = find(**seen)
    assert (finding.id, finding.severity) == (rule, severity)
    assert finding.fix


def test_a_clean_vm_has_no_findings() -> None:
    """An old move and an unknown licence are none either."""
    assert on_vm(moved_minutes_ago=300.0, free_licence=None) == []
    assert on_server() == []


@pytest.mark.parametrize(
    ("machine", "guest"),
    [
        ("SQL16", None),
        ("SQL16", "sql16.example.com"),
        ("A-VERY-LONG-NAM", "a-very-long-name-of-a-machine"),
    ],
)
def test_a_machine_is_known_by_its_short_name_and_unknown_without_tools(
    machine: str, guest: str | None
) -> None:
    """NetBIOS cuts names; a guest that Tools say nothing of is not evaluated."""
    assert on_server(guest, machine_name=machine) == []


def test_a_study_may_accept_what_it_knows_and_nothing_else() -> None:
    """What it accepts warns and says so; what no study may accept blocks."""
    tolerant = study(accept=list(get_args(Acceptable)))
    every = [*(item for case in VM_CASES for item in on_vm(**case[2]))]
    every += [item for case in SERVER_CASES for item in on_server(**case[2])]
    blocking = {item.id for item in every if item.severity == "block"}
    assert set(get_args(Acceptable)) <= blocking
    left = {item.id for item in (accepted(tolerant, item) for item in every) if item.severity == "block"}
    assert left == blocking - set(get_args(Acceptable))
    (taken,) = (accepted(tolerant, item) for item in on_vm(raw_disks=("Hard disk 3",)))
    assert taken.what.endswith("Accepted by the study.")


RESERVED = {"memoryReservationLockedToMax": True}


@pytest.mark.parametrize(
    ("asked", "own", "blocks"),
    [
        ("keep", {}, True),
        ("keep", RESERVED, False),
        ("none", RESERVED, True),
        ("locked", {}, False),
    ],
)
def test_an_arm_that_leaves_memory_unreserved_is_refused_beside_passthrough_devices(
    asked: str, own: dict[str, Any], blocks: bool
) -> None:
    """ESXi refuses such a power-on, and the VM would stay off until it is restored."""
    asks = study(all_arms={"memory_reservation": asked}, arms=["1x16"])

    found = list(passthrough_findings(asks, vm_of(**own), host_of(), Surroundings(passthrough=("GPU",))))

    assert [(one.id, one.severity) for one in found] == ([("P15", "block")] if blocks else [])
