"""Evaluate every rule on every subject, deciding once what cannot apply or be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vnuma.checks.facts import HARDWARE, PARTS, Facts, Subject, Unknown, assumed_words
from vnuma.checks.rule import Fail, Finding, Fix, ObjectKind, Rule, Severity
from vnuma.domain.vm.setting import Settings, is_extra_config


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All rules on one subject. Findings are created on demand, since most rules pass on most VMs."""

    facts: Facts
    failed: Sequence[tuple[Rule, Fail]]
    """In the rules' order."""
    not_evaluated: Mapping[str, str]
    """The reason by rule, in the rules' order."""
    passed: int
    """The number of rules that passed."""
    assumed: Mapping[str, str]
    """By rule, which defaults its answer assumes; no entry for an answer from facts alone."""

    @property
    def subject(self) -> Subject:
        """The evaluated subject."""
        return self.facts.subject

    @property
    def failures(self) -> list[Finding]:
        """Failed rules, worst first; those that wait for another rule come last."""
        failed = {rule.id for rule, _ in self.failed}
        return sorted(
            (
                _finding(self.subject, rule, fail, failed, self.assumed.get(rule.id, ""))
                for rule, fail in self.failed
            ),
            key=lambda found: (found.severity.rank, bool(found.superseded_by), found.rule),
        )


def evaluate(subjects: Iterable[Subject], rules: Iterable[Rule]) -> Iterator[Evaluation]:
    """Each subject's results, in the subjects' order. Pure and lazy; only which rules apply to which release
    is cached.
    """
    rules = tuple(rules)
    concerned: dict[tuple[object, ...], list[tuple[Rule, _Asked]]] = {}
    for subject in subjects:
        facts = Facts(subject)
        present = tuple([getattr(subject, part) is not None for part in PARTS])
        key = (
            present,
            facts.release if subject.host else None,
            subject.vm.hardware_version if subject.vm else None,
            HARDWARE in subject.absent,
        )
        plan = concerned.get(key)
        if plan is None:
            every = ((rule, _asked(rule, facts, present)) for rule in rules)
            plan = concerned[key] = [(rule, asked) for rule, asked in every if asked is not None]
        yield _evaluated(facts, plan, len(rules))


_Asked = Callable[[Facts], Fail | None] | str
"""For one kind of subject: the function to call, or a part whose absence is the reason."""


def _asked(rule: Rule, facts: Facts, present: tuple[bool, ...]) -> _Asked | None:
    """How to call a rule on subjects of this kind; None: it does not apply, and so passes."""
    here = {part for part, there in zip(PARTS, present, strict=True) if there}
    applies = rule.applies
    if applies.needs_release and "host" in here and not applies.since <= facts.release <= applies.until:
        return None
    if "vm" in here and applies.needs_hardware:
        if HARDWARE in facts.subject.absent:
            return HARDWARE
        if not applies.hardware_since <= facts.hardware <= applies.hardware_until:
            return None
    needs = rule.needs | ({"host"} if applies.needs_release else set())
    return next((part for part in PARTS if part in needs and part not in here), rule.check)


def _evaluated(facts: Facts, plan: Iterable[tuple[Rule, _Asked]], rules: int) -> Evaluation:
    """The answers of the rules that apply, of so many rules in all."""
    failed: list[tuple[Rule, Fail]] = []
    not_evaluated, assumed, absent = dict[str, str](), dict[str, str](), dict[str, str]()
    for rule, asked in plan:
        if isinstance(asked, str):
            if asked not in absent:
                absent[asked] = facts.why_absent(asked)
            not_evaluated[rule.id] = absent[asked]
            continue
        try:
            answer = asked(facts)
        except Unknown as unknown:
            not_evaluated[rule.id] = str(unknown)
            facts.assumed.clear()
            continue
        if answer is not None:
            failed.append((rule, answer))
        if facts.assumed:
            assumed[rule.id] = assumed_words(tuple(facts.assumed.items()))
            facts.assumed.clear()
    return Evaluation(facts, failed, not_evaluated, rules - len(failed) - len(not_evaluated), assumed)


def _finding(subject: Subject, rule: Rule, answer: Fail, failed: set[str], assumed: str) -> Finding:
    kind, name, key = answer.object or _object(subject)
    if answer.object and subject.vm and key:  # managed object ids are not unique across vCenters
        key = f"{subject.vm.vcenter_uuid}/{key}"
    severity = answer.severity or rule.severity_for(studied=subject.study is not None)
    first = next((other for other in rule.yields_to if other in failed), "")
    return Finding(
        rule=rule.id,
        severity=Severity.WARN if rule.unconfirmed and severity is Severity.BLOCK else severity,
        title=answer.title or rule.title,
        kind=kind,
        name=name,
        key=key,
        vm=subject.vm.name if subject.vm else "",
        vm_key=subject.vm.key if subject.vm else "",
        arm=subject.study.arm if subject.study else "",
        observed=answer.observed,
        consequence=rule.consequence,
        fix=_fix(answer.fix, subject) if answer.fix else Fix(rule.fix),
        source=rule.sources[0],
        superseded_by=first,
        matters=rule.yields_to.get(first, "") or answer.matters,
        unconfirmed=rule.unconfirmed,
        assumed=assumed,
    )


def _fix(fix: Fix, subject: Subject) -> Fix:
    """The fix for the VM; in a study it changes the arm and no VM."""
    current: Settings = subject.vm.settings if subject.vm and subject.study is None else {}
    names = {name.lower(): name for name in fix.settings if is_extra_config(name)}
    if names:  # the VM's keys in the fix's spelling, since their case is insignificant and varies
        current = {names.get(name.lower(), name): value for name, value in current.items()}
    return replace(fix, topology=_shape(subject), current=current)


def _shape(subject: Subject) -> str:
    """The VM's sockets x cores per socket; empty if unknown or not whole."""
    settings = subject.vm.settings if subject.vm else {}
    vcpus, per_socket = settings.get("numCPUs"), settings.get("numCoresPerSocket") or 1
    if not isinstance(vcpus, int) or not isinstance(per_socket, int) or vcpus % per_socket:
        return ""
    return f"{vcpus // per_socket}x{per_socket}"


def _object(subject: Subject) -> tuple[ObjectKind, str, str]:
    if subject.vm:
        return "vm", subject.vm.name, subject.vm.key
    if subject.host:
        return "host", subject.host.name, subject.host.moid
    if subject.cluster:
        return "cluster", subject.cluster.name, subject.cluster.moid
    return "study", subject.study.study.name if subject.study else "", ""
