"""All warnings of the page, each with its next step."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.analysis.result import Analysis
from vnuma.report.model.limits import limits_the_result
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import lead
from vnuma.store.rows import Vm


@dataclass(frozen=True)
class Warning_:
    """One warning with its next step."""

    id: str
    severity: str
    what: str
    advice: str

    @property
    def lead(self) -> str:
        """Its topic."""
        return lead(self.what)[0]

    @property
    def rest(self) -> str:
        """The rest of its text."""
        return lead(self.what)[1]


def warnings_of(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> list[Warning_]:
    """The analysis' cautions, then preflight's and the run's findings; worst first in each.

    Findings of preflight that limit the result are in `limits` instead.
    """
    warnings = [Warning_(item.id, "warn", item.what, item.advice) for item in analysis.cautions]
    every = loaded.vm_facts(vm, "preflight").values()
    findings = [finding for finding in every if not limits_the_result(finding)]
    rank = ["block", "warn", "info"]
    findings.sort(key=lambda item: rank.index(item["severity"]))
    warnings += [
        Warning_(item["id"], item["severity"], item["what"], item.get("fix") or "") for item in findings
    ]
    warnings += [
        Warning_(key, "warn", str(value), "See docs and the log of the run.")
        for key, value in loaded.vm_facts(vm, "warning").items()
    ]
    busy = [ready for ready in loaded.attempt_facts(vm, "boot", "ready").values() if _busy(ready)]
    if busy:
        what = f"{len(busy)} boots were measured although the guest did not become quiet."
        warnings.append(
            Warning_("busy_guest", "warn", what, "Raise quiet.timeout_s, or find what is running there.")
        )
    return warnings


def _busy(ready: object) -> bool:
    quietness = ready.get("quietness") if isinstance(ready, dict) else None
    return isinstance(quietness, dict) and quietness.get("quiet") is False
