"""Estates and checks of them for tests."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from tests.support.cli import vnuma_here
from vnuma.checks.result import CheckedVm, CheckResult
from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.domain.vm.setting import Value
from vnuma.engine.design_check.check import CheckRequest, compare, run_check
from vnuma.engine.design_check.history import earlier
from vnuma.estate import snapshot
from vnuma.estate.waivers import Waiver
from vnuma.report.check.as_data import as_json

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
                instance_uuid=str(uuid5(NAMESPACE_DNS, name)),
                settings={**vm.facts.settings, **settings},
            ),
            vm.absent,
        )
        for number, name in enumerate(names)
    ]
    return replace(estate, vms=tuple(made), simulated=None)


def checked(*estates: Estate, **asked: Any) -> CheckResult:
    """A check of estates."""
    return run_check(estates, CheckRequest(**asked))


def saved(folder: Path, *estates: Estate) -> Path:
    """A snapshot of estates in a file."""
    file = folder / "estate.json"
    snapshot.save(estates, file)
    return file


def failed(vm: CheckedVm) -> set[str]:
    """Rules that failed on a VM."""
    return {item.finding.rule for item in vm.findings}


def check(*arguments: str | Path) -> dict[str, Any]:
    """The JSON document of `vnuma check` with these arguments, which succeeds."""
    ran = vnuma_here("check", *arguments, "--format", "json")
    assert ran.code == 0, ran.text
    return document(ran.out)


def rules_in(said: dict[str, Any]) -> set[str]:
    """Rules that failed in such a document."""
    return {item["rule"] for item in said["findings"]}


def document(text: str) -> dict[str, Any]:
    """A JSON text as an object."""
    found: dict[str, Any] = json.loads(text)
    return found


TODAY = date(2026, 11, 20)


LATER = date(2027, 1, 1)


def waiver(rule: str = "T11", object_: str = "sql-*", until: date = LATER) -> Waiver:
    """An accepted finding."""
    return Waiver(rule=rule, object=object_, reason="CR-17", until=until)


def since(before: CheckResult, after: CheckResult, tmp_path: Path) -> CheckResult:
    """A check compared with an earlier one's document."""
    file = tmp_path / "old.json"
    file.write_text(as_json(before), encoding="utf-8")
    return compare(after, earlier(file, CheckRequest()))
