"""Whether the run was analysed as declared before its first boot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vnuma.analysis.wording import listed
from vnuma.domain.study.declaration import SCOPE, Declared, declaration, deviations
from vnuma.domain.vm.plain_text import counted
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Fact


@dataclass(frozen=True)
class PlanCheck:
    """`sha256` of the plan, None if none was stored; `differs` lists deviations from the declaration."""

    sha256: str | None
    differs: tuple[str, ...]
    earlier_runs: tuple[str, ...]

    @property
    def words(self) -> str:
        """As in "as declared (SHA-256 ...); earlier runs of the study: none"."""
        if self.sha256 is None:
            return "none was stored before the first boot"
        found = f"NOT as declared: {'; '.join(self.differs)}" if self.differs else "as declared"
        earlier = listed(self.earlier_runs) or "none"
        return f"{found} (SHA-256 {self.sha256}); earlier runs of the study: {earlier}"


def plan_check(loaded: LoadedRun) -> PlanCheck:
    """Compare the declaration with the present study, method and run."""
    facts = [fact for fact in loaded.facts if fact.scope == SCOPE and fact.vm_id is None]
    stored = {fact.key: fact.value for fact in facts}
    plan, sha256 = stored.get("plan"), stored.get("sha256")
    if not isinstance(plan, dict) or not isinstance(sha256, str):
        return PlanCheck(None, (), ())
    declared = Declared(plan, sha256)
    now = declaration(loaded.study, loaded.study_sha256, declared.earlier_runs)
    differs = (*deviations(declared, now), *_late(loaded, facts), *_short(loaded))
    return PlanCheck(sha256, differs, declared.earlier_runs)


def _late(loaded: LoadedRun, facts: list[Fact]) -> Iterator[str]:
    begun = min((attempt.started_at for attempt in loaded.attempts), default=None)
    if begun is not None and max(fact.at for fact in facts) > begun:
        yield "it was stored after the first boot"


def _short(loaded: LoadedRun) -> Iterator[str]:
    """Blocks that are missing without a declared rule having given them up."""
    if loaded.partial:
        return
    for analysis in loaded.result.primary:
        if analysis.blocks_not_begun:
            yield f"{counted(analysis.blocks_not_begun, 'declared block')} not begun on {analysis.vm}"
        elif not analysis.at_declared_end:
            yield f"the last declared block is not complete on {analysis.vm}"
