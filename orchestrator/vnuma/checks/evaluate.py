"""Every rule over every subject, quickly: what cannot apply or cannot be seen is decided once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from vnuma.checks.facts import PARTS, Facts, Unknown
from vnuma.checks.finding import Finding, Fix, Kind, Outcome, Severity
from vnuma.checks.rule import Fail, Rule
from vnuma.checks.subject import HARDWARE, Subject

Answer = Fail | str | None
"""What became of a rule: a failure, the reason that it was not evaluated, or None for a pass."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All rules on one subject. Findings are made on demand: most rules pass on most VMs."""

    facts: Facts
    rules: Sequence[Rule]
    answers: tuple[Answer, ...]
    """One for each rule, in the rules' order."""

    @property
    def subject(self) -> Subject:
        """What the rules were asked about."""
        return self.facts.subject

    def findings(self, *outcomes: Outcome) -> list[Finding]:
        """Findings of these outcomes (of all, without any), worst first within failures."""
        failed = {rule.id for rule, answer in self._answered() if isinstance(answer, Fail)}
        found = [
            _finding(self.subject, rule, answer, failed)
            for rule, answer in self._answered()
            if not outcomes or _outcome(answer) in outcomes
        ]
        return sorted(found, key=_order)

    @property
    def failures(self) -> list[Finding]:
        """What failed, worst first; what has to wait for another rule after it."""
        some = [(rule, answer) for rule, answer in self._answered() if isinstance(answer, Fail)]
        failed = {rule.id for rule, _ in some}
        return sorted((_finding(self.subject, rule, answer, failed) for rule, answer in some), key=_order)

    @property
    def not_evaluated(self) -> dict[str, str]:
        """Rule id -> reason, for what could not be seen."""
        return {rule.id: answer for rule, answer in self._answered() if isinstance(answer, str)}

    @property
    def passed(self) -> int:
        """How many rules found nothing."""
        return self.answers.count(None)

    def count(self, outcome: Outcome) -> int:
        """How many rules came out so."""
        return sum(_outcome(answer) is outcome for answer in self.answers)

    def _answered(self) -> Iterator[tuple[Rule, Answer]]:
        return zip(self.rules, self.answers, strict=True)


def evaluate(subjects: Iterable[Subject], rules: Sequence[Rule]) -> Iterator[Evaluation]:
    """Each subject's answers, in the subjects' order. Pure and lazy: nothing is kept between subjects
    but which rules concern which release."""
    rules = tuple(rules)
    concerned: dict[tuple[object, ...], list[_Asked]] = {}
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
            plan = concerned[key] = [_asked(rule, facts, present) for rule in rules]
        yield Evaluation(facts, rules, tuple(_answers(plan, facts)))


def findings(subjects: Iterable[Subject], rules: Sequence[Rule]) -> Iterator[Finding]:
    """Every failure of every subject, subject by subject."""
    for evaluation in evaluate(subjects, rules):
        yield from evaluation.failures


_Asked = Callable[[Facts], Fail | None] | str | None
"""For one kind of subject: a function to ask, a part whose reason answers it, or None for a pass."""


def _asked(rule: Rule, facts: Facts, present: tuple[bool, ...]) -> _Asked:
    """Whether a rule has to be asked on subjects of this kind at all."""
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


def _answers(plan: Iterable[_Asked], facts: Facts) -> Iterator[Answer]:
    for asked in plan:
        if asked is None:
            yield None
        elif isinstance(asked, str):
            yield facts.why_absent(asked)
        else:
            try:
                answer: Answer = asked(facts)
            except Unknown as unknown:
                answer = str(unknown)
            yield answer


def _outcome(answer: Answer) -> Outcome:
    if answer is None:
        return Outcome.PASS
    return Outcome.NOT_EVALUATED if isinstance(answer, str) else Outcome.FAIL


def _finding(subject: Subject, rule: Rule, answer: Answer, failed: set[str]) -> Finding:
    kind, name, key = _object(subject)
    studied = subject.study is not None
    severity = rule.severity_for(studied=studied)
    common = (rule.id, severity, _outcome(answer), rule.title, kind, name, key)
    vm, vm_key = (subject.vm.name, subject.vm.key) if subject.vm else ("", "")
    arm, source = (subject.study.arm if subject.study else ""), rule.sources[0]
    if not isinstance(answer, Fail):
        return Finding(
            *common, vm, vm_key, arm, reason=answer or "", source=source, unconfirmed=rule.unconfirmed
        )
    if answer.object:
        kind, name, key = _of_its_vcenter(answer.object, subject)
    first = next((other for other in rule.yields_to if other in failed), "")
    return Finding(
        rule.id,
        _severity(rule, answer.severity or severity),
        Outcome.FAIL,
        rule.title,
        kind,
        name,
        key,
        vm,
        vm_key,
        arm,
        observed=answer.observed,
        consequence=rule.consequence,
        fix=_fix(answer.fix, subject) if answer.fix else Fix(rule.fix),
        source=source,
        superseded_by=first,
        matters=rule.yields_to.get(first, "") or answer.matters,
        unconfirmed=rule.unconfirmed,
    )


def _fix(fix: Fix, subject: Subject) -> Fix:
    """The fix with the VM that it changes. In a study it is the arm that changes, and no VM."""
    current = subject.vm.settings if subject.vm and subject.study is None else {}
    return replace(fix, topology=_shape(subject), current=current)


def _of_its_vcenter(found: tuple[Kind, str, str], subject: Subject) -> tuple[Kind, str, str]:
    """The object with a key that no other vCenter gives: managed object ids repeat there."""
    kind, name, key = found
    return (kind, name, f"{subject.vm.vcenter_uuid}/{key}") if subject.vm and key else found


def _shape(subject: Subject) -> str:
    """The VM's sockets x cores per socket; empty where they are not known or not whole."""
    settings = subject.vm.settings if subject.vm else {}
    vcpus, per_socket = settings.get("numCPUs"), settings.get("numCoresPerSocket") or 1
    if not isinstance(vcpus, int) or not isinstance(per_socket, int) or vcpus % per_socket:
        return ""
    return f"{vcpus // per_socket}x{per_socket}"


def _severity(rule: Rule, severity: Severity) -> Severity:
    """General knowledge without a source warns at most."""
    return Severity.WARN if rule.unconfirmed and severity is Severity.BLOCK else severity


def _object(subject: Subject) -> tuple[Kind, str, str]:
    if subject.vm:
        return "vm", subject.vm.name, subject.vm.key
    if subject.host:
        return "host", subject.host.name, subject.host.moid
    if subject.cluster:
        return "cluster", subject.cluster.name, subject.cluster.moid
    return "study", subject.study.study.name if subject.study else "", ""


def _order(finding: Finding) -> tuple[int, int, bool, str]:
    outcome = (Outcome.FAIL, Outcome.NOT_EVALUATED, Outcome.PASS).index(finding.outcome)
    return outcome, finding.severity.rank, bool(finding.superseded_by), finding.rule
