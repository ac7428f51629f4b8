"""Estates and checks of them for tests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from vnuma.checks.result import CheckResult
from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.domain.vm.setting import Value
from vnuma.engine.design_check.check import Asked, run_check
from vnuma.estate import snapshot

SMALL = Path(__file__).parent / "data" / "inventory-1.json"


def estate_of(*names: str, **settings: Value) -> Estate:
    """VMs of these names on the fixture's host, with other settings."""
    (estate,) = snapshot.load(SMALL)
    (vm,) = estate.vms
    made = [
        EstateVm(
            replace(
                vm.facts,
                moid=f"vm-{number}",
                name=name,
                path=f"/DC1/vm/Prod/{name}",
                instance_uuid=f"uuid-{name}",
                settings={**vm.facts.settings, **settings},
            ),
            vm.absent,
        )
        for number, name in enumerate(names)
    ]
    return replace(estate, vms=tuple(made), simulated=None)


def checked(*estates: Estate, **asked: Any) -> CheckResult:
    """A check of estates."""
    return run_check(estates, Asked(**asked))


def saved(folder: Path, *estates: Estate) -> Path:
    """A snapshot of estates in a file."""
    file = folder / "estate.json"
    snapshot.save(estates, file)
    return file


def rules_of(result: CheckResult, vm: str) -> set[str]:
    """Rules that failed on a VM."""
    return {item.finding.rule for found in result.vms if found.name == vm for item in found.findings}


def document(text: str) -> dict[str, Any]:
    """A JSON text as an object."""
    found: dict[str, Any] = json.loads(text)
    return found
