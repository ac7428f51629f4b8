"""A check as JUnit XML, with a suite per rule, so that a pipeline shows what failed or was not evaluated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from vnuma.checks.against_design import DRIFT, Drift
from vnuma.checks.finding import Severity
from vnuma.checks.result import CheckResult, Judged
from vnuma.checks.rule import Rule
from vnuma.domain.vm.plain_text import counted
from vnuma.report.check.words import DRIFT_RULE, drift_rows, xml_text


def as_junit(result: CheckResult) -> str:
    """The file's text. Blocks and warnings are failures; informational findings pass with a note.

    VMs that pass a rule are one test case together, and so are those that it could not be evaluated on.
    """
    found: Mapping[str, list[tuple[str, Judged]]] = defaultdict(list)
    failing: Counter[str] = Counter()
    reasons: Mapping[str, Counter[str]] = defaultdict(Counter)
    for vm in result.vms:
        failing.update({item.finding.rule for item in vm.findings})
        for item in vm.findings:
            found[item.finding.rule].append((vm.path, item))
        for rule, reason in vm.not_evaluated.items():
            reasons[rule][reason] += 1
    root = Element("testsuites", name=_name(result))
    for asked in result.rules:
        other = len(result.vms) - failing[asked.id] - sum(reasons[asked.id].values())
        _suite(root, asked, result.checked_at, found[asked.id], reasons[asked.id], other)
    if result.drift:
        _drift_suite(root, result.drift, result.checked_at)
    indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _name(result: CheckResult) -> str:
    name = "vnuma check of " + ", ".join(source.name for source in result.sources)
    return f"SIMULATED: {name}" if result.simulated else name


def _suite(
    root: Element,
    rule: Rule,
    checked_at: str,
    found: Sequence[tuple[str, Judged]],
    reasons: Mapping[str, int],
    other: int,
) -> None:
    suite = SubElement(root, "testsuite", name=f"{rule.id} {rule.title}", timestamp=checked_at[:19])
    failures = skipped = 0
    for path, item in found:
        case = SubElement(suite, "testcase", classname=f"vnuma.{rule.id}", name=xml_text(path))
        words = _words(item)
        if item.waived:
            SubElement(case, "skipped", message=xml_text(f"waived: {item.waived}"))
            skipped += 1
        elif item.severity is Severity.INFO:
            SubElement(case, "system-out").text = words
        else:
            SubElement(case, "failure", type=item.severity.value, message=item.finding.title).text = words
            failures += 1
    for reason, vms in reasons.items():
        case = SubElement(
            suite, "testcase", classname=f"vnuma.{rule.id}", name=f"{counted(vms, 'VM')} not evaluated"
        )
        SubElement(case, "skipped", message=xml_text(reason))
        skipped += 1
    if other > 0:
        SubElement(suite, "testcase", classname=f"vnuma.{rule.id}", name=f"{counted(other, 'VM')} passed")
    _count(suite, failures, skipped)


def _drift_suite(root: Element, drift: Drift, checked_at: str) -> None:
    """VMs that are not as designed fail; those that could not be compared are skipped."""
    suite = SubElement(root, "testsuite", name=f"{DRIFT} {DRIFT_RULE.title}", timestamp=checked_at[:19])
    failures = 0
    for row in drift_rows(drift):
        case = SubElement(suite, "testcase", classname=f"vnuma.{DRIFT}", name=xml_text(row.path))
        words = [row.observed, f"Design: {row.design}", f"Fix: {DRIFT_RULE.fix}"]
        failure = SubElement(case, "failure", type=Severity.WARN.value, message=row.title)
        failure.text = xml_text("\n".join(line for line in words if line))
        failures += 1
    for one in drift.unmatched:
        case = SubElement(suite, "testcase", classname=f"vnuma.{DRIFT}", name=xml_text(one.name))
        SubElement(case, "skipped", message=xml_text(f"not compared: {one.why}"))
    if same := drift.compared - len(drift.vms):
        SubElement(suite, "testcase", classname=f"vnuma.{DRIFT}", name=f"{counted(same, 'VM')} as designed")
    _count(suite, failures, len(drift.unmatched))


def _count(suite: Element, failures: int, skipped: int) -> None:
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failures))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")


def _words(item: Judged) -> str:
    it = item.finding
    lines = [f"{it.kind} {it.name}"] + [f"{name}: {value}" for name, value in it.observed.items()]
    lines += [it.consequence, f"Fix: {it.fix.text}", it.matters, it.source]
    return xml_text("\n".join(line for line in lines if line))
