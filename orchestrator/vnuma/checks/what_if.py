"""What the rules, predictions and advice say of a VM that somebody describes: one question, one answer.

A question is text by field, as a form or an address has it; an answer is what JSON can say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vnuma.checks.advice import Candidate, advise, planned_vm, sentences
from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import HOST_OPTIONS, Subject
from vnuma.checks.fix_as import Target, Tool, fix_as
from vnuma.checks.rule import Finding, Fix
from vnuma.checks.rules.catalogue import RULES
from vnuma.domain.topology.forecast import Forecast, PlannedGuest, forecast_on, planned_guest
from vnuma.domain.topology.picture import topology_svg
from vnuma.domain.topology.release import MOST_VCPUS, VIRTUAL_NUMA_HARDWARE, hardware_version_of
from vnuma.domain.topology.topology import partial_socket
from vnuma.domain.topology.vm_location import parse_host
from vnuma.domain.vm.estate import NotShown
from vnuma.domain.vm.facts import ClusterFacts, HostFacts
from vnuma.domain.vm.server import SqlEdition, windows_named
from vnuma.domain.vm.setting import Settings, Value, named_settings
from vnuma.errors import UsageError, VnumaError

DEFAULTS: Mapping[str, str] = {
    **{"name": "sql-vm", "vcpus": "16", "memory": "256", "per_socket": "auto", "hardware": "auto"},
    **{
        "hot_add": "",
        "set": "",
        "nodes": "2",
        "cores": "20",
        "node_gb": "384",
        "esxi": "8.0",
        "threads": "2",
    },
    **{"others": "", "sql": "2022", "edition": "developer", "windows": "Server 2022", "width": "720"},
}
"""Every field of a question, with its value where the question does not have it."""

_MOST: Mapping[str, tuple[str, int, int]] = {
    "vcpus": ("vCPUs", 1, MOST_VCPUS),
    "memory": ("memory in GB", 1, 24_560),
    "per_socket": ("cores per socket", 1, MOST_VCPUS),
    "hardware": ("hardware version", 4, 99),
    "nodes": ("NUMA nodes of the host", 1, 64),
    "cores": ("cores of a NUMA node", 1, 512),
    "node_gb": ("memory of a NUMA node in GB", 0, 100_000),
    "threads": ("threads of a core", 1, 8),
    "sql": ("the year of SQL Server", 2000, 2100),
    "width": ("the picture's width", 280, 2000),
}
_LONGEST = 4000
"""Most letters of a field; no setting is as long."""


@dataclass(frozen=True)
class Question:
    """A question as values."""

    vcpus: int
    memory_mb: int
    hardware: int
    settings: Settings
    hosts: tuple[HostFacts, ...]
    guest: PlannedGuest


def answer(asked: Mapping[str, str]) -> dict[str, Any]:
    """The answer, or `{"error": what, "fix": what to do}` for a question without one."""
    try:
        return _answered(asked)
    except VnumaError as error:
        return {"error": error.what, "fix": error.fix or ""}


def _answered(given: Mapping[str, str]) -> dict[str, Any]:
    asked = question_of(given)
    fields = _fields(given)
    seen = forecast_on(asked.settings, asked.hardware, asked.hosts, asked.guest)
    advice = advise(asked.vcpus, asked.memory_mb, asked.hosts, asked.hardware, asked.guest)
    by_name = {host.name: host for host in asked.hosts}
    width = _number(fields, "width")
    where = ", ".join(by_name)
    target = Target(fields["name"] or DEFAULTS["name"])
    findings, unanswered = _judged(asked)
    return {
        "vm": f"{asked.vcpus} vCPUs, {asked.memory_mb // 1024} GB, hardware version {asked.hardware}",
        "layouts": [
            {
                **_layout(one, by_name[one.hosts[0]]),
                "svg": topology_svg(one, by_name[one.hosts[0]], asked.memory_mb, width=width),
            }
            for one in seen
        ],
        "findings": findings,
        "not_evaluated": unanswered,
        "advice": list(sentences(advice, asked.vcpus, asked.memory_mb, where, int(fields["sql"]))),
        "other_vcpus": list(advice.other_vcpus),
        "candidates": [_candidate(one, target, _lines(fields)) for one in advice.candidates],
        "as": _in_tools(Fix("", settings=asked.settings, current=None), target),
    }


def _fields(given: Mapping[str, str]) -> Mapping[str, str]:
    return {name: str(given.get(name, default)).strip() for name, default in DEFAULTS.items()}


def question_of(given: Mapping[str, str]) -> Question:
    """The question in these fields. Raises UsageError for one that has no answer."""
    fields = _fields(given)
    long = next((name for name, text in fields.items() if len(text) > _LONGEST), "")
    if long:
        raise UsageError(f"{long} has more than {_LONGEST} letters.", fix="Shorten it.")
    hosts = _hosts(fields)
    oldest = min(hardware_version_of(host.release.version) for host in hosts)
    hardware = oldest if _is_automatic(fields, "hardware") else _number(fields, "hardware")
    vcpus, memory_mb = _number(fields, "vcpus"), _number(fields, "memory") * 1024
    settings: dict[str, Value] = {
        "numCPUs": vcpus,
        "memoryMB": memory_mb,
        "cpuHotAddEnabled": fields["hot_add"] not in ("", "0", "false", "off"),
        **_sockets(fields, hardware),
        **named_settings(_lines(fields)),
    }
    if why := partial_socket(settings):
        raise UsageError(f"No answer: {why}.", fix=f"Use a number that divides {vcpus}, or auto.")
    guest = planned_guest(fields["edition"], _number(fields, "sql"), fields["windows"])
    return Question(vcpus, memory_mb, hardware, settings, hosts, guest)


def _lines(fields: Mapping[str, str]) -> list[str]:
    return [line for line in fields["set"].replace(";", "\n").splitlines() if line.strip()]


def _sockets(fields: Mapping[str, str], hardware: int) -> dict[str, Value]:
    """Before hardware version 20 the host chooses where a socket has one core."""
    if not _is_automatic(fields, "per_socket"):
        return {"numCoresPerSocket": _number(fields, "per_socket"), "autoCoresPerSocket": False}
    if hardware >= VIRTUAL_NUMA_HARDWARE:
        return {"numCoresPerSocket": 0, "autoCoresPerSocket": True}
    return {"numCoresPerSocket": 1, "autoCoresPerSocket": False}


def _is_automatic(fields: Mapping[str, str], name: str) -> bool:
    return fields[name].lower() in ("", "auto")


def _number(fields: Mapping[str, str], name: str) -> int:
    what, least, most = _MOST[name]
    text = fields[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
        raise UsageError(f"{what}: '{text[:20]}' is not a number from {least} to {most}.", fix="Correct it.")
    return int(text)


def _hosts(fields: Mapping[str, str]) -> tuple[HostFacts, ...]:
    """The host of the fields, and the others, which are written as 2x16/96@7.0."""
    memory = _number(fields, "node_gb")
    first = f"{_number(fields, 'nodes')}x{_number(fields, 'cores')}{f'/{memory}' if memory else ''}"
    others = fields["others"].replace(";", " ").replace(",", " ").split()
    threads = _number(fields, "threads")
    try:
        return tuple(parse_host(one, fields["esxi"], threads) for one in dict.fromkeys((first, *others)))
    except ValueError as error:
        raise UsageError(f"{error}.", fix="Correct the host.") from error


_BY_DESCRIPTION = NotShown("the description of the host")


def _judged(asked: Question) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Broken rules, each with its hosts, worst first; and why others were not evaluated."""
    vm = planned_vm(asked.settings, asked.hardware)
    rules = [rule for rule in RULES if "study" not in rule.needs]
    cluster = ClusterFacts("", "hosts given", None, asked.hosts)
    subjects = [
        Subject(
            vm=vm,
            host=host,
            cluster=cluster,
            guest=windows_named(asked.guest.windows) if asked.guest.windows else None,
            planned_sql=SqlEdition(asked.guest.sql_edition, asked.guest.sql_major),
            absent={HOST_OPTIONS: _BY_DESCRIPTION},
        )
        for host in asked.hosts
    ]
    found: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Finding, list[str]]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for host, one in zip(asked.hosts, evaluate(subjects, rules), strict=True):
        for finding in one.failures:
            key = finding.rule, tuple(finding.observed.items())
            found.setdefault(key, (finding, []))[1].append(host.name)
        for rule, why in one.not_evaluated.items():
            reasons.setdefault(why, {})[rule] = None
    broken = [
        finding_document(finding, hosts if len(hosts) < len(asked.hosts) else ())
        for finding, hosts in found.values()
    ]
    return broken, [{"why": why, "rules": list(rules)} for why, rules in reasons.items()]


def finding_document(finding: Finding, hosts: Sequence[str] = ()) -> dict[str, Any]:
    """A broken rule as the page shows it; `hosts` names those that it is broken on, if not all."""
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "title": finding.title,
        "observed": "; ".join(f"{name} {value}" for name, value in finding.observed.items()),
        "consequence": finding.consequence,
        "fix": finding.fix.text,
        "source": finding.source,
        "assumed": finding.assumed,
        "hosts": list(hosts),
    }


def _layout(seen: Forecast, host: HostFacts) -> dict[str, Any]:
    """Wider than the host's cores is unwise; wider than its logical CPUs cannot be powered on. More memory
    than the host has can: ESXi admits what is reserved, and swaps.
    """
    never = seen.not_allowed or seen.stays_off or seen.topology.vcpus > host.threads
    return {
        "hosts": list(seen.hosts),
        "sizes": list(seen.prediction.node_sizes),
        "topology": str(seen.topology),
        "alternatives": list(seen.prediction.alternatives),
        "confidence": seen.confidence,
        "impossible": bool(never),
        "swaps": seen.too_large,
        "reasons": list(seen.reasons),
    }


def _candidate(one: Candidate, target: Target, asked: Sequence[str]) -> dict[str, Any]:
    """A shape; `set` is what the question's settings become with it: no node size of another shape stays."""
    kept = [line for line in asked if not line.strip().startswith(("coresPerNumaNode", "numa."))]
    settings = [f"{name}={value}" for name, value in one.settings.items()]
    return {
        "topology": str(one.topology),
        "per_socket": one.topology.cores_per_socket,
        "worth": one.worth.name.lower(),
        "nodes": one.nodes,
        "reasons": list(one.reasons),
        "settings": settings,
        "set": "\n".join([*kept, *settings]),
        "as": _in_tools(one.fix(None), target),
    }


def _in_tools(fix: Fix, target: Target) -> dict[str, str]:
    return {tool.label: fix_as(tool, fix, target) for tool in (Tool.POWERCLI, Tool.GOVC, Tool.TERRAFORM)}
