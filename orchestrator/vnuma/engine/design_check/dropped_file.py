"""A file dropped on the what-if page: its VMs judged by the design rules, in the reader's own browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vnuma.checks.evaluate import Evaluation, evaluate
from vnuma.checks.facts import shape_of
from vnuma.checks.result import not_sql
from vnuma.checks.rule import Severity
from vnuma.checks.rules.catalogue import DECIDING, RULES
from vnuma.checks.what_if import finding_document, question_of
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.domain.vm.estate import Estate
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import is_governed
from vnuma.engine.design_check.designed_vms import DESIGNS, on_hosts, subject_in
from vnuma.errors import InputError, VnumaError
from vnuma.estate.ovf import read_ovf
from vnuma.estate.rvtools import read_sheets
from vnuma.estate.vmx import read_vmx

_READERS = {
    **{".vmx": read_vmx, ".ovf": read_ovf, ".ova": read_ovf},
    **dict.fromkeys((".csv", ".xlsx", ".xlsm", ".xls"), read_sheets),
}
_MOST_VMS = 1000
"""VMs that the page lists."""


def judge(path: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """The VMs of a file, worst first, each with its broken rules; `{"error", "fix"}` if it cannot be read.

    The VMs of a design run on the hosts of the question `fields`, those of an RVTools export on their own.
    """
    try:
        return _judged(Path(path), fields)
    except VnumaError as error:
        return {"error": error.what.replace(path, Path(path).name), "fix": error.fix or ""}


def _judged(path: Path, fields: Mapping[str, str]) -> dict[str, Any]:
    estate = _read(path)
    if estate.kind in DESIGNS:
        estate = on_hosts(estate, VmLocation(question_of(fields).hosts), None)
    rules = [rule for rule in RULES if "study" not in rule.needs]
    evaluated = evaluate([subject_in(estate, vm) for vm in estate.vms], rules)
    found = [_vm(one) for one in sorted(evaluated, key=_worst_first)]
    return {
        "file": path.name,
        "kind": "a design" if estate.kind in DESIGNS else "an RVTools export",
        "vms": found[:_MOST_VMS],
        "left_out": max(0, len(found) - _MOST_VMS),
        "unseen": [f"{item.kind} {item.name}: {item.why}" for item in estate.unseen],
    }


def _read(path: Path) -> Estate:
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path.name} is not a file that this page reads.", fix="Drop a .vmx, .ovf, .ova, .csv or .xlsx."
        )
    return reader(path)


def _worst_first(one: Evaluation) -> tuple[int, bool, int]:
    ranks = [finding.severity.rank for finding in one.failures]
    worst = min(ranks, default=len(Severity))
    return worst, not_sql(one.subject.vm.name if one.subject.vm else ""), -ranks.count(worst)


def _vm(one: Evaluation) -> dict[str, Any]:
    vm, host = one.subject.vm, one.subject.host
    assert vm is not None  # every subject here was made of one
    return {
        "name": vm.name,
        "shape": shape_of(vm.settings),
        "host": host.name if host else vm.host_name,
        "findings": [finding_document(finding) for finding in one.failures],
        "undecided": bool(DECIDING & one.not_evaluated.keys()),
        "question": _question(vm, host),
    }


def _question(vm: VmFacts, host: HostFacts | None) -> dict[str, str]:
    """The VM in the fields of a question, as far as they are known."""
    own = vm.settings
    keys = {name: value for name, value in own.items() if is_governed(name) and value is not None}
    if size := own.get("coresPerNumaNode"):
        keys["coresPerNumaNode"] = size
    memory = own.get("memoryMB")
    found = {
        "name": vm.name,
        "vcpus": own.get("numCPUs"),
        "memory": max(1, memory // 1024) if isinstance(memory, int) else None,
        "per_socket": "auto" if own.get("autoCoresPerSocket") else own.get("numCoresPerSocket"),
        "hot_add": "1" if own.get("cpuHotAddEnabled") else "",
        "hardware": vm.hardware_version or None,
        "set": "\n".join(f"{name}={value}" for name, value in keys.items()),
    }
    if host and not host.described:
        found |= {"nodes": len(host.numa_nodes), "cores": host.cores_per_node, "esxi": host.release.version}
        found |= {"node_gb": host.node_memory_mb // 1024, "threads": host.threads_per_core, "others": ""}
    return {name: str(value) for name, value in found.items() if value is not None}
