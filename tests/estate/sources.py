"""Each input of `vnuma check` with all that it can say, read by its own reader; and what rules see of it.

A rule is tried on its golden cases, cut down to the facts that a source's reader gave: what the reader left
out, or said to be absent, is taken away. So running the code makes the table of rule-sources.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from tests.estate.designs import Design
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from tests.unit.checks.cases import read_cases
from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import EXTRA_CONFIG, PlacementFacts, Subject
from vnuma.checks.rule import Rule
from vnuma.checks.rules.catalogue import RULES
from vnuma.domain.study.study import Study
from vnuma.domain.topology.vm_location import VmLocation, parse_host
from vnuma.domain.vm.estate import Estate
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, VmFacts
from vnuma.domain.vm.setting import TYPED, Value
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.design_check import estates
from vnuma.engine.design_check.check import CheckRequest, sql_reader, study_subjects, subject_of
from vnuma.engine.design_check.designed_vms import DESIGNS, on_hosts
from vnuma.estate import snapshot
from vnuma.estate.design import read_design
from vnuma.estate.design_vm import NEW_VM
from vnuma.estate.rvtools import read_rvtools

TOOLS = (
    "familyName='Windows' buildNumber='14393' "
    "prettyName='Windows Server 2016 Standard, 64-bit (Build 14393.1)'"
)
LAB = {
    "name": "sources",
    "esxi": {"version": "8.0.3"},
    "vms": [{"name": "sql16", "extra_config": {"guestInfo.detailed.data": TOOLS}}],
}
"""The lab's scenario in place of a vCenter."""


@dataclass(frozen=True)
class Way:
    """One way of using a source: its options in the table, and a VM as the reader gives it."""

    word: str
    subject: Subject
    fixed: Mapping[str, Value]
    """Settings that every VM of this source has alike, since it has no field for them."""


@dataclass(frozen=True)
class Source:
    """A column of the table: the ways of using it, each with all that the one before gives."""

    name: str
    ways: tuple[Way, ...]


def read_sources(folder: Path, lab: LabHandle) -> list[Source]:
    """Every source, from this lab and from files in this folder."""
    site = write_inventory(folder, lab)
    (whole,) = estates.read_all(Inventory(site))
    saved = folder / "estate.json"
    snapshot.save([whole], saved)
    (loaded,) = snapshot.load(saved)
    design = Design(
        memory=16384, windows="2019"
    )  # with the lab's own VM it fits a node, so that M02 can be evaluated
    catalogue = VmLocation(loaded.clusters[0].hosts)
    return [
        _live(site, whole),
        _file("snapshot", loaded),
        _file("RVTools", read_rvtools(design.rvtools(folder))),
        *(
            _design(name, read_design(write(folder)), catalogue)
            for name, write in (
                ("Terraform", design.terraform),
                ("OVF, OVA", design.ovf),
                (".vmx", design.vmx),
                ("Ansible", design.ansible),
                ("table", design.full_table),
            )
        ),
    ]


def _live(site: Path, whole: Estate) -> Source:
    """A vCenter; with what a check of one VM reads besides; with SQL Server, esxtop's screen and a study."""
    (one,) = estates.read_some(Inventory(site), ["sql16"])
    with_sql = _first(one, CheckRequest(sql=sql_reader(Inventory(site).targets().values())))
    study = Study.model_validate(
        {"name": "s", "vms": ["sql16"], "vcpus": 16, "reference": "1x16", "arms": ["1x16", "4x4"]}
    )
    ways = (
        ("yes", _first(whole, CheckRequest())),
        ("--vm", _first(one, CheckRequest())),
        ("--sql", with_sql),
        ("--evidence", _watched(with_sql)),
        ("--study", study_subjects(study, _watched(with_sql))[0]),
    )
    return Source("vCenter", tuple(Way(word, subject, {}) for word, subject in ways))


def _file(name: str, estate: Estate) -> Source:
    """VMs that run, read from a file; and with esxtop's screen."""
    subject = _first(estate, CheckRequest())
    return Source(name, (Way("yes", subject, {}), Way("--evidence", _watched(subject), {})))


def _watched(subject: Subject) -> Subject:
    return replace(subject, placement=PlacementFacts(69.0, 1, (0,), (1,)))


def _design(name: str, estate: Estate, catalogue: VmLocation) -> Source:
    described = VmLocation((parse_host("2x16/96", "8.0"),))
    ways = [
        ("yes", estate),
        ("--host-nodes", on_hosts(estate, described, None)),
        ("--cluster", on_hosts(estate, catalogue, "cl")),
    ]
    (vm,) = estate.vms
    fixed = {key: value for key, value in NEW_VM.items() if vm.facts.settings.get(key) == value}
    assert estate.kind in DESIGNS
    return Source(name, tuple(Way(word, _first(one, CheckRequest()), fixed) for word, one in ways))


def _first(estate: Estate, asked: CheckRequest) -> Subject:
    return subject_of(estate, estate.vms[0], asked)


def seen(case: Subject, way: Way) -> Subject:
    """A golden case as this source would show it."""
    there = way.subject
    return replace(
        case,
        vm=_vm(case.vm, way),
        host=_host(case.host, there.host),
        cluster=_cluster(case.cluster, there.cluster),
        guest=_less(case.guest, there.guest),
        sql=_less(case.sql, there.sql),
        planned_sql=_less(case.planned_sql or (case.sql.edition if case.sql else None), there.planned_sql),
        study=case.study if there.study else None,
        placement=_less(case.placement, there.placement),
        waits=_less(case.waits, there.waits),
        absent=there.absent,
    )


def _vm(case: VmFacts | None, way: Way) -> VmFacts | None:
    there = way.subject.vm
    if case is None or there is None:
        return None
    keys = EXTRA_CONFIG not in way.subject.absent
    shown = {
        name: value
        for name, value in case.settings.items()
        if (name in there.settings if name in TYPED else keys)
    }
    return replace(case, settings={**shown, **way.fixed})


def _host(case: HostFacts | None, there: HostFacts | None) -> HostFacts | None:
    less = _less(case, there)
    if less is None or there is None:
        return None
    clock = less.mhz if there.mhz else 0
    return replace(less, described=there.described, numa_reported=there.numa_reported, mhz=clock)


def _cluster(case: ClusterFacts | None, there: ClusterFacts | None) -> ClusterFacts | None:
    less = _less(case, there)
    if less is None or there is None or not there.hosts:
        return less
    return replace(less, hosts=tuple(filter(None, (_host(host, there.hosts[0]) for host in less.hosts))))


Part = TypeVar("Part", bound=Any)


def _less(case: Part | None, there: Part | None) -> Part | None:
    """A part of the case without what this source's part leaves open; None without that part."""
    if case is None or there is None:
        return None
    open_ = {one.name: getattr(there, one.name) for one in fields(there)}
    return replace(case, **{name: value for name, value in open_.items() if value is None or value == ""})


@dataclass(frozen=True)
class Cell:
    """A rule with a source: the way that it takes ("" for none), all of it or a part, and why not."""

    way: str
    whole: bool
    why: str
    partly: frozenset[str] = frozenset()
    """The ways that answer some cases, but not all."""
    assumes: bool = False
    """Whether an answer assumes defaults of what the source never shows."""

    @property
    def never(self) -> bool:
        """Whether the source gives nothing of what the rule asks."""
        return not self.way


Row = Mapping[str, Cell]


def table(sources: Sequence[Source]) -> dict[str, Row]:
    """By rule and source."""
    cases: dict[str, list[Subject]] = {rule.id: [] for rule in RULES}
    for case in read_cases():
        if case.expect != "not_evaluated":
            cases[case.rule].append(case.subject())
    return {
        rule.id: {source.name: _cell(rule, cases[rule.id], source) for source in sources} for rule in RULES
    }


def _cell(rule: Rule, cases: Sequence[Subject], source: Source) -> Cell:
    """The first way that answers every case; else the one that answers most."""
    best, most, why = "", 0, ""
    partly, assumes = set[str](), False
    for way in source.ways:
        given = [case for case in cases if _concerns(case, way.subject)] or cases
        evaluations = list(evaluate([seen(case, way) for case in given], [rule]))
        assumes = any(one.assumed for one in evaluations)
        reasons = [why for one in evaluations for why in one.not_evaluated.values()]
        if not reasons:
            return Cell(way.word, True, "", frozenset(partly), assumes)
        if len(evaluations) > len(reasons):
            partly.add(way.word)
        if len(evaluations) - len(reasons) > most:
            best, most = way.word, len(evaluations) - len(reasons)
        why = reasons[0]
    return Cell(best, False, why, frozenset(partly), assumes)


def _concerns(case: Subject, there: Subject) -> bool:
    """Not a study's case outside a study, nor a planned SQL Server's where one runs."""
    if case.study and not there.study:
        return False
    return not (case.planned_sql and not case.sql and there.sql)
