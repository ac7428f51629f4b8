"""The design check: facts into subjects, rules over them, waivers and an earlier check beside them."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

from vnuma.checks.against_design import DRIFT
from vnuma.checks.check_history import Earlier, ExaminedObjects
from vnuma.checks.evaluate import Evaluation, evaluate
from vnuma.checks.facts import Facts, PlacementFacts, StudyFacts, Subject, Unknown, shape_of
from vnuma.checks.result import CheckedVm, CheckResult, Judged, Key, Since, Source, not_sql
from vnuma.checks.rule import Finding, Rule, Severity
from vnuma.checks.rules.catalogue import RULES
from vnuma.collector import gc_paused
from vnuma.domain.arm.desired_settings import desired_settings, vcpus_of
from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import settings_after
from vnuma.domain.vm.estate import Estate, EstateVm, Unread
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.server import SqlFacts, WindowsFacts, windows_of_banner
from vnuma.domain.vm.setting import Power, Settings
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.design_check.designed_vms import (
    DESIGNS,
    added_by_host,
    planned,
    present_vms,
    subject_in,
    today,
)
from vnuma.errors import EnvironmentProblem, InputError, PreflightBlocked
from vnuma.estate.waivers import Waiver, in_design
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance.server import read_sql
from vnuma.words.plain_text import first_of

_NAMED = 8
"""How many tags, folders or clusters a message names."""


@dataclass(frozen=True)
class Filters:
    """Each is a pattern with * and ?; empty lets everything through.

    `folder` is matched with the inventory path of the VM's folder and those below it, `tag` with
    `category:name` or, without a colon, with names of any category.
    """

    name: str = ""
    folder: str = ""
    cluster: str = ""
    tag: str = ""

    def admit(self, estate: Estate, vm: EstateVm) -> bool:
        """Whether the VM is one of those asked for."""
        folder, cluster = self.folder.rstrip("/"), estate.cluster_of.get(vm.facts.host_moid)
        below = folder if folder.startswith(("/", "*")) else f"*/{folder}"
        tag = self.tag if ":" in self.tag else f"*:{self.tag}"
        return (
            (not self.name or fnmatchcase(vm.facts.name, self.name))
            and (not folder or fnmatchcase(vm.facts.path, f"{below}/*"))
            and (not self.cluster or (cluster is not None and fnmatchcase(cluster.name, self.cluster)))
            and (not self.tag or any(fnmatchcase(one, tag) for one in vm.tags or ()))
        )

    def require_any(self, estates: Sequence[Estate]) -> None:
        """Refuse filters that let no VM through: nothing would be checked, and a pipeline would take it for
        well.

        Raises InputError that names the first filter that no VM passes, or all of them where each has VMs
        of its own; it says so where tags were not read at all.
        """
        given = [part.name for part in fields(self) if getattr(self, part.name)]
        pairs = [(estate, vm) for estate in estates for vm in estate.vms]
        if not given or any(self.admit(estate, vm) for estate, vm in pairs):
            return
        for name in given:
            alone = Filters(**{name: getattr(self, name)})
            if not any(alone.admit(estate, vm) for estate, vm in pairs):
                raise alone._nothing(name, estates)
        words = " ".join(f"--{name} '{getattr(self, name)}'" for name in given)
        raise InputError(
            f"No VM {_seen(estates)}matches all of {words}.",
            fix="Each filter alone matches VMs: remove one.",
        )

    def _nothing(self, name: str, estates: Sequence[Estate]) -> InputError:
        """What to say where no VM passes the one filter of that name."""
        vms = [vm for estate in estates for vm in estate.vms]
        if name == "tag":
            return self._no_tag(estates, vms)
        there = {
            "folder": {vm.facts.path.rpartition("/")[0] for vm in vms},
            "cluster": {one.name for estate in estates for one in estate.cluster_of.values()},
        }
        what = "is named" if name == "name" else f"is in the {name}"
        fix = "Patterns may use * and ?, as in --name 'sql-*'; case matters."
        if name in there:
            fix = f"There are: {first_of(sorted(there[name]), _NAMED) or 'none'}."
        return InputError(f"No VM {_seen(estates)}{what} {getattr(self, name)}.", fix=fix)

    def _no_tag(self, estates: Sequence[Estate], vms: Sequence[EstateVm]) -> InputError:
        if all(vm.tags is None for vm in vms):
            reasons = [item.why for estate in estates for item in estate.unseen if item.kind == "tags"]
            return InputError(
                f"VMs cannot be chosen by tag: {reasons[0] if reasons else 'no tags were read.'}",
                fix="Tags are read with --all and saved by vnuma inventory save; RVTools exports have none.",
            )
        known = sorted({tag for vm in vms for tag in vm.tags or ()})
        return InputError(
            f"No VM {_seen(estates)}has the tag {self.tag}.",
            fix=f"Existing tags: {first_of(known, _NAMED) or 'none'}.",
        )


def _seen(estates: Sequence[Estate]) -> str:
    """What limits the VMs of a vCenter; a file shows what it has."""
    return "that the account may see " if any(estate.kind == "vcenter" for estate in estates) else ""


NO_LOGIN = "the inventory has no login to SQL Server for this VM"

ReadSql = Callable[[VmFacts, str], SqlFacts | str]
"""The facts of the SQL Server in a VM of a vCenter, or why there are none."""


def sql_reader(targets: Iterable[Target]) -> ReadSql:
    """Read the SQL Servers of an inventory, by the VM that they run in: its name or its inventory path.

    One that does not answer is a reason, not an error.
    """
    known = {(target.hypervisor.host, target.vm): target for target in targets if target.sql}

    def read(vm: VmFacts, vcenter: str) -> SqlFacts | str:
        target = known.get((vcenter, vm.path)) or known.get((vcenter, vm.name))
        if target is None:
            return NO_LOGIN
        if vm.power is not Power.ON:
            return f"{vm.name} is powered off"
        try:
            with connect(sql_server(target)) as connection:
                return read_sql(connection)
        except EnvironmentProblem as error:
            return error.what

    return read


@dataclass(frozen=True)
class CheckRequest:
    """What a check is asked besides the facts. `sql` is None without --sql; `placements` by VM name."""

    filters: Filters = field(default_factory=Filters)
    sql: ReadSql | None = None
    placements: Mapping[str, PlacementFacts] = field(default_factory=dict)
    study: Study | None = None
    waivers: Sequence[Waiver] = ()
    present: Sequence[Estate] = ()
    """The site as it is, where a design is checked: what its VMs are today."""
    assume_defaults: bool = True
    """Whether rules assume the defaults of settings that a source never shows."""
    today: date = field(default_factory=lambda: datetime.now(UTC).date())


@gc_paused()
def run_check(estates: Sequence[Estate], asked: CheckRequest) -> CheckResult:
    """Evaluate the rules over every VM that the filters let through."""
    # What concerns a measurement alone is asked only of a study.
    rules = RULES if asked.study else tuple(rule for rule in RULES if "study" not in rule.needs)
    present = present_vms(asked.present)
    used: set[Waiver] = set()
    vms: list[CheckedVm] = []
    notes, beside = list[str](), list[Waiver]()
    others: list[tuple[Estate, EstateVm]] = []
    host_adds = dict[str, int]()
    for estate in estates:
        chosen: list[EstateVm] = []
        for vm in estate.vms:
            if asked.filters.admit(estate, vm):
                chosen.append(vm)
            else:
                others.append((estate, vm))
        subjects = [subject_of(estate, vm, asked) for vm in chosen]
        if estate.kind in DESIGNS and subjects and all(subject.host is None for subject in subjects):
            host_adds[estate.source] = added_by_host(
                replace(estate, vms=tuple(chosen)),
                rules,
                lambda there, vm: subject_of(there, vm, CheckRequest()),
            )
        evaluated = _evaluated(subjects, rules, asked.study)
        for vm, (subject, evaluations) in zip(chosen, evaluated, strict=True):
            own, wrong = _own_waivers(vm)
            notes += wrong
            waivers = replace(asked, waivers=(*asked.waivers, *own)) if own else asked
            beside += own
            found = _checked(subject, estate.source, evaluations, waivers, used)
            if estate.kind in DESIGNS:
                then, now = planned(estate, vm), today(estate, vm, present)
                found = replace(found, declared=vm.declared, planned=then, today=now)
            vms.append(found)
    vms.sort(key=_worst_first)
    return CheckResult(
        checked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        sources=tuple(_source(estate) for estate in estates),
        rules=rules,
        vms=tuple(vms),
        unseen=tuple(item for estate in estates for item in estate.unseen),
        unread=tuple(item.name for estate in estates for item in estate.unseen if isinstance(item, Unread)),
        waivers=(*notes, *_waiver_notes((*asked.waivers, *beside), asked.today, used)),
        simulated=next((estate.simulated for estate in estates if estate.simulated), None),
        left_out=len(others),
        not_asked=frozenset(name for estate, vm in others for name in _names(estate, vm)),
        every_rule=len(RULES),
        host_adds=host_adds,
    )


def compare(result: CheckResult, earlier: Earlier) -> CheckResult:
    """The same result, each finding marked as new or unchanged, and with what is gone."""
    now = {item.key for vm in result.vms for item in vm.findings}
    drifted: set[Key] = {(DRIFT, "vm", vm.facts.key) for vm in result.drift.vms} if result.drift else set()
    now |= drifted & earlier.found.keys()
    vms = tuple(
        replace(
            vm,
            findings=tuple(
                replace(item, change="unchanged" if item.key in earlier.found else "new")
                for item in vm.findings
            ),
        )
        for vm in result.vms
    )
    seen = ExaminedObjects(result)
    gone: dict[bool, list[tuple[str, str, str]]] = {True: [], False: []}
    for key, name in earlier.found.items():
        if key not in now:
            rule, kind, _ = key
            gone[not seen.would_find(key, name)].append((rule, kind, name))
    since = Since(
        checked_at=earlier.checked_at,
        new=len(now - earlier.found.keys()),
        unchanged=len(now & earlier.found.keys()),
        fixed=tuple(sorted(gone[False])),
        unknown=tuple(sorted(gone[True])),
    )
    return replace(result, vms=vms, since=since)


def _names(estate: Estate, vm: EstateVm) -> tuple[str, ...]:
    """Under what a finding may be known that is seen from this VM: its key, its host, its cluster."""
    cluster = estate.cluster_of.get(vm.facts.host_moid)
    return vm.facts.key, vm.facts.host_name, cluster.name if cluster else ""


def subject_of(estate: Estate, vm: EstateVm, asked: CheckRequest) -> Subject:
    """What the rules are asked about: a VM with what is known around it, and what the request adds."""
    subject = subject_in(estate, vm)
    sql, absent = (asked.sql(vm.facts, estate.source) if asked.sql else None), subject.absent
    if isinstance(sql, str):
        absent, sql = {**absent, "sql": sql}, None
    if not asked.assume_defaults:
        absent = {name: str(why) for name, why in absent.items()}
    placement = asked.placements.get(vm.facts.name)
    return replace(subject, guest=_windows(vm, sql), sql=sql, placement=placement, absent=absent)


def _windows(vm: EstateVm, sql: SqlFacts | None) -> WindowsFacts | None:
    """Windows as VMware Tools tell it, else as SQL Server does: it has the build wherever it answers."""
    if vm.guest and vm.guest.build:
        return vm.guest
    return (windows_of_banner(sql.server.version_text) if sql else None) or vm.guest


def _evaluated(
    subjects: Sequence[Subject], rules: Sequence[Rule], study: Study | None
) -> Iterator[tuple[Subject, list[Evaluation]]]:
    """Each VM with its evaluations: one, or one for each arm of a study."""
    if study is None:
        for subject, evaluation in zip(subjects, evaluate(subjects, rules), strict=True):
            yield subject, [evaluation]
        return
    for subject in subjects:
        arms = study_subjects(study, subject) if subject.host else [subject]
        yield subject, list(evaluate(arms, rules))


def _checked(
    subject: Subject, source: str, evaluations: Sequence[Evaluation], asked: CheckRequest, used: set[Waiver]
) -> CheckedVm:
    vm, host = subject.vm, subject.host
    assert vm is not None  # every subject here was made of one
    findings: Iterable[Finding] = (finding for one in evaluations for finding in one.failures)
    if len(evaluations) > 1 and asked.study:
        findings = merge_arms(findings, asked.study.labels)
    not_evaluated = {rule: why for one in evaluations for rule, why in one.not_evaluated.items()}
    assumed = {rule: words for one in evaluations for rule, words in one.assumed.items()}
    settings = vm.settings
    memory = settings.get("memoryMB")
    return CheckedVm(
        name=vm.name,
        path=vm.path,
        key=vm.key,
        shape=shape_of(settings),
        memory_mb=memory if isinstance(memory, int) else None,
        host=host.name if host else vm.host_name,
        cluster=subject.cluster.name if subject.cluster and subject.cluster.moid != vm.host_moid else "",
        release=host.release.version if host else "",
        guest=_guest(evaluations[0].facts),
        assumed=assumed,
        findings=tuple(_judged(finding, vm.path, asked, used) for finding in findings),
        not_evaluated=not_evaluated,
        passed=min(one.passed for one in evaluations),
        source=source,
    )


def _judged(finding: Finding, path: str, asked: CheckRequest, used: set[Waiver]) -> Judged:
    for waiver in asked.waivers:
        if waiver.covers(finding, path):
            used.add(waiver)
            if waiver.until >= asked.today:
                return Judged(finding, waiver.reason)
    return Judged(finding)


def _own_waivers(vm: EstateVm) -> tuple[list[Waiver], list[str]]:
    """The waivers that a design states beside a VM, and what is wrong with those that are none."""
    found, wrong = list[Waiver](), list[str]()
    for text in vm.accepted:
        try:
            found += in_design(text, glob.escape(vm.facts.path))
        except InputError as error:
            wrong.append(f"{error.what} It counts for nothing. {error.fix}")
    return found, wrong


def _waiver_notes(waivers: Iterable[Waiver], today: date, used: set[Waiver]) -> Iterator[str]:
    for waiver in waivers:
        words = f"waiver {waiver.rule} {waiver.object} ({waiver.reason})"
        if waiver.until < today:
            yield f"{words} expired on {waiver.until.isoformat()}: its findings count again"
        elif waiver not in used:
            yield f"{words} matches no finding"


ASSUMED = "*"
"""After a predicted number of nodes: it assumes defaults."""


def _guest(facts: Facts) -> str:
    """What the guest has, or will have: seen by SQL Server, else predicted (~; ~* assumes defaults)."""
    facts.assumed.clear()
    try:
        predicted = str(facts.prediction.vnuma_nodes)
    except Unknown:
        predicted = ""
    if facts.subject.sql is None:
        return f"~{predicted}{ASSUMED if facts.assumed else ''}" if predicted else ""
    seen = str(facts.sql.topology.numa_nodes)
    return seen if predicted in ("", seen) else f"{seen}, not {predicted}"


def _worst_first(vm: CheckedVm) -> tuple[int, bool, int, str, str]:
    worst = vm.worst
    rank = worst.rank if worst else len(Severity)
    alike = sum(item.severity is worst for item in vm.findings)
    return rank, not_sql(vm.name), -alike, vm.name, vm.path


def _source(estate: Estate) -> Source:
    return Source(
        name=estate.source,
        kind=estate.kind,
        product=estate.product,
        read_at=estate.read_at,
        vms=len(estate.vms),
        hosts=len(estate.hosts),
        clusters=len(estate.clusters),
        whole=estate.whole,
        full_at=estate.full_at or estate.read_at,
        taken_over=estate.taken_over,
    )


def study_subjects(study: Study, subject: Subject) -> list[Subject]:
    """One subject per arm: the VM with the arm's settings, everything else unchanged.

    An impossible arm has only its topology; `desired_settings` reports it. Raises ValueError for a subject
    without VM or host.
    """
    vm, host = subject.vm, subject.host
    if vm is None or host is None:
        raise ValueError("a study needs the VM and its host")
    arms = {label: _settings(study, label, vm, host) for label in study.labels}
    return [
        replace(
            subject,
            vm=replace(vm, settings=settings),
            study=StudyFacts(study, arms, label),
        )
        for label, settings in arms.items()
    ]


def _settings(study: Study, label: str, vm: VmFacts, host: HostFacts) -> Settings:
    arm = study.arm(label)
    try:
        desired = desired_settings(arm, vm, host)
    except PreflightBlocked:
        desired = {"numCPUs": vcpus_of(arm, vm), "numCoresPerSocket": arm.cores_per_socket or 0}
    return settings_after(vm.settings, desired)


def merge_arms(findings: Iterable[Finding], arms: tuple[str, ...]) -> list[Finding]:
    """Merge findings that several arms share; `arm` names them, and is empty for all."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.rule, finding.key, tuple(finding.observed.items()))
        groups.setdefault(key, []).append(finding)
    return [replace(group[0], arm=_named(group, arms)) for group in groups.values()]


def _named(group: list[Finding], arms: tuple[str, ...]) -> str:
    seen = [finding.arm for finding in group]
    return "" if set(seen) == set(arms) else ", ".join(dict.fromkeys(seen))
