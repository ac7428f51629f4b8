"""Golden cases of the rules, read from tests/data/rules: what is given, what must come out."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.hosts import guest_of, host_of, vm_of
from vnuma.checks.facts import PlacementFacts, Subject
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import ClusterFacts, CpuWaits, HostFacts, VmFacts
from vnuma.domain.vm.server import Permissions, ServerFacts, SqlEdition, SqlFacts, WindowsFacts, XtpDatabase
from vnuma.domain.vm.setting import TYPED, Power
from vnuma.engine.design_check.check import study_subjects

FOLDER = Path(__file__).parents[2] / "data" / "rules"


@dataclass(frozen=True)
class Case:
    """One golden case: the rule, what is expected of it, and the facts."""

    rule: str
    expect: str
    data: dict[str, Any]

    @property
    def id(self) -> str:
        """Such as T05-fail: 30 vCPUs in sockets of 6."""
        return f"{self.rule}-{self.expect}: {self.data.get('why', '')}"

    def subject(self) -> Subject:
        """The facts as a subject; in a study, the one of the arm that `arm_under_test` names."""
        return subject_of(self.data)


@cache
def read_cases() -> tuple[Case, ...]:
    """Every case of every file."""
    return tuple(
        Case(str(rule), str(entry["expect"]), entry)
        for path in sorted(FOLDER.glob("*.yml"))
        for rule, entries in yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader).items()
        for entry in entries
    )


def subject_of(data: dict[str, Any]) -> Subject:
    """A subject of the paper's VM on its host, with the case's facts in place of theirs."""
    without = dict(data.get("without", {}))
    vm, host = _vm(data.get("vm", {}), without), _host(data.get("host", {}))
    subject = Subject(
        vm=None if "vm" in without else vm,
        host=None if "host" in without else host,
        cluster=None if "cluster" in without else _cluster(data.get("cluster", {}), host),
        guest=_part(WindowsFacts, data, "guest"),
        sql=_sql(data["sql"]) if "sql" in data else None,
        placement=_part(PlacementFacts, data, "placement"),
        waits=_part(CpuWaits, data, "waits"),
        absent=without,
        planned_sql=_part(SqlEdition, data, "planned"),
    )
    return _in_study(subject, data["study"]) if "study" in data else subject


def _in_study(subject: Subject, given: dict[str, Any]) -> Subject:
    base = {"name": "s", "vms": ["sql16"], "vcpus": 16, "reference": "1x16", "arms": ["1x16", "4x4"]}
    given = dict(given)
    wanted = given.pop("arm_under_test", None)
    subjects = study_subjects(Study.model_validate(base | given), subject)
    return next((one for one in subjects if one.study and one.study.arm == wanted), subjects[0])


def _vm(given: dict[str, Any], without: dict[str, str]) -> VmFacts:
    known = {field.name for field in fields(VmFacts)}
    changed = {name: value for name, value in given.items() if name in known}
    settings = {name: value for name, value in given.items() if name not in known}
    if "cpuAffinity" in settings:
        settings["cpuAffinity"] = _cpus(settings["cpuAffinity"])
    if "memory_gb" in settings:
        settings["memoryMB"] = settings.pop("memory_gb") * 1024
    if "power" in changed:
        changed["power"] = Power(changed["power"])
    off = dict.fromkeys(("cpuHotAddEnabled", "memoryHotAddEnabled", "memoryReservationLockedToMax"), False)
    vm = vm_of()
    values = {**dict.fromkeys(TYPED), **off, **vm.settings, **settings}
    return replace(
        vm, settings={name: value for name, value in values.items() if name not in without}, **changed
    )


def _cpus(text: object) -> tuple[int, ...]:
    """CPUs as a list of numbers and ranges: 0-15,32."""
    found: list[int] = []
    for part in filter(None, str(text).split(",")):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return tuple(found)


def _host(given: dict[str, Any]) -> HostFacts:
    given = dict(given)
    shape = str(given.pop("numa", "2x16"))
    nodes, _, cores = shape.partition("x")
    host = host_of(
        nodes=int(nodes),
        cores=int(cores),
        threads=given.pop("threads_per_core", 2),
        release=str(given.pop("release", "7.0.3")),
        memory_gb=given.pop("memory_gb", 192),
    )
    return replace(host, **given)


def _cluster(given: dict[str, Any], host: HostFacts) -> ClusterFacts:
    others = tuple(
        replace(_host(other), name=f"esx{number:02}", moid=f"host-{number}")
        for number, other in enumerate(given.get("others", ()), start=2)
    )
    drs = given.get("drs_enabled", False)
    return ClusterFacts("domain-c1", "SQL", drs, (host, *others), tuple(given.get("unread", ())))


def _part(kind: type[Any], data: dict[str, Any], name: str) -> Any:
    return kind(**{key: _value(value) for key, value in data[name].items()}) if name in data else None


def _value(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _sql(given: dict[str, Any]) -> SqlFacts:
    given = dict(given)  # a case is read more than once
    topology = replace(
        guest_of(given.pop("vcpus", 16), given.pop("sockets", 4), given.pop("cores_per_socket", 4), 1),
        **{
            key: given.pop(key)
            for key in ("numa_nodes", "sql_cpu_nodes", "visible_online", "visible_offline", "soft_numa")
            if key in given
        },
    )
    own = {field.name for field in fields(SqlFacts)} - {"server", "topology"}
    rest: dict[str, Any] = {key: _value(value) for key, value in given.items() if key in own}
    if "xtp_databases" in given:
        rest["xtp_databases"] = tuple(XtpDatabase(**one) for one in given["xtp_databases"])
    server: dict[str, Any] = {key: _value(value) for key, value in given.items() if key not in own}
    return SqlFacts(replace(SERVER, cpu_count=topology.vcpus, **server), topology, **rest)


SERVER = ServerFacts(
    version="15.0.4365.2",
    version_text="Microsoft SQL Server 2019",
    product_level="RTM",
    update_level="CU26",
    edition="Developer Edition (64-bit)",
    engine_edition=3,
    collation="SQL_Latin1_General_CP1_CI_AS",
    xtp_supported=True,
    hadr_enabled=False,
    clustered=False,
    cpu_count=16,
    scheduler_count=16,
    max_workers=704,
    physical_memory_kb=64 * 1024 * 1024,
    committed_kb=8 * 1024 * 1024,
    committed_target_kb=50 * 1024 * 1024,
    uptime_s=3600,
    start_time="2026-11-20 06:00:00.000",
    affinity="AUTO",
    virtual_machine="HYPERVISOR",
    numa_node_count=1,
    soft_numa="OFF",
    memory_model="LOCK_PAGES",
    max_dop=8,
    cost_threshold=50,
    max_server_memory_mb=57344,
    min_server_memory_mb=0,
    lightweight_pooling=False,
    trace_flags=(),
    permissions=Permissions(True, None, True, True),
    other_sessions=0,
    foreign_committed_kb={0: 0},
)
"""A SQL Server that trips no rule."""
