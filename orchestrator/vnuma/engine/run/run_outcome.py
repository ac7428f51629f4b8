"""How a run ended, and the error that sets its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vnuma.engine.lease.hours import LONGER, Closed
from vnuma.engine.restore.restore import worst_first
from vnuma.engine.restore.restore_vm import Restored
from vnuma.engine.run.progress import Progress
from vnuma.errors import CellsMissing, Interrupted, NotAtBaseline, RestoreConflict
from vnuma.store.rows import Run, RunState


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended: the state of its cells, what was restored, and what could not be."""

    progress: Progress
    restored: tuple[Restored, ...]
    problems: tuple[Exception, ...]
    interrupted: bool
    """By Ctrl-C or another signal to this process."""
    play_output: str = ""
    closed: Closed | None = None
    """Why the allowed hours end it before its last cell."""

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped it, by a signal or with `vnuma stop`."""
        return self.interrupted or self.progress.run.stop_requested is not None

    @property
    def names_lasting_causes(self) -> bool:
        """Whether its error says why VMs get no further cells: nothing else decides the exit code."""
        return not (self.problems or self.closed or self.stopped)

    @property
    def worst(self) -> Exception | None:
        """The problem that decides the exit code."""
        return next(iter(worst_first(self.problems)), None)

    def raise_for_outcome(self) -> None:
        """Raise the error that decides the exit code: first of all, a VM not at its baseline."""
        if self.worst:
            raise self.worst
        run, valid, total = self.progress.run.name, self.progress.valid, self.progress.total
        again = resume_command(self.progress.run)
        if self.closed:
            later = f"{again}, within the allowed hours."
            anew = f"{LONGER} This needs a new run."
            raise CellsMissing(
                f"{run}: {valid} of {total} cells, all kept. {self.closed.why}",
                fix=anew if self.closed.for_good else later,
            )
        if not self.progress.lacks_cells:
            return
        if self.stopped:
            ended = Interrupted if self.interrupted else CellsMissing
            raise ended(f"Stopped after {valid} of {total} cells.", fix=again)
        raise _missing(self.progress)


End = Literal["ended", "paused", "hours_missed", "not_at_baseline"]


def end_of(outcome: RunOutcome | None, error: Exception | None) -> End:
    """The gravest thing to report about a run's end. `error` decides its exit code.

    `paused` and `hours_missed`: cells are left, and `vnuma run --resume` continues.
    """
    if isinstance(error, NotAtBaseline):
        return "not_at_baseline"
    if error is None or outcome is None or outcome.worst:
        return "ended"
    if outcome.closed:
        return "hours_missed"
    return "paused" if outcome.stopped and outcome.progress.lacks_cells else "ended"


def resume_command(run: Run) -> str:
    """The command that continues the run, or the site's part of it."""
    return f"vnuma run --resume {run.name}{_at(run)}"


def restore_command(run: Run) -> str:
    """The command that restores the VMs of the run, or of the site's part of it."""
    return f"vnuma restore --run {run.name}{_at(run)}"


def _at(run: Run) -> str:
    return f" --site {run.site}" if run.site else ""


def state_at_end(progress: Progress, problems: Sequence[Exception]) -> RunState:
    """The run's state once nothing works on it: stopped while cells are left, failed without any."""
    if away := [problem for problem in problems if isinstance(problem, NotAtBaseline)]:
        return state_away(away)
    if not progress.lacks_cells:
        return RunState.FINISHED
    return RunState.STOPPED if progress.has_cells_left else RunState.FAILED


def state_away(problems: Sequence[NotAtBaseline]) -> RunState:
    """The state of a run with VMs that are not at their baseline: it waits for a person."""
    conflict = any(isinstance(problem, RestoreConflict) for problem in problems)
    return RunState.CONFLICT if conflict else RunState.FAILED


def _missing(progress: Progress) -> CellsMissing:
    """The error for cells without a valid attempt, by VMs that need a person, or by their attempts."""
    run, again = progress.run.name, resume_command(progress.run)
    what = f"{run}: {progress.total - progress.valid} of {progress.total} cells have no valid attempt."
    whys = {vm.name: (vm.lasting.detail or "").partition("\n") for vm in progress.vms if vm.lasting}
    if not whys:
        then = (
            f"{again} uses the remaining attempts."
            if progress.has_cells_left
            else "No attempts are left: correct the cause, then start a new run."
        )
        return CellsMissing(what, fix=f"vnuma results {run} shows why. {then}")
    ends = [
        f"{name} got no further cell, because each would end in the same way: {why}"
        for name, (why, _, _) in whys.items()
    ]
    fixes = dict.fromkeys(" ".join(fix.split()) for _, _, fix in whys.values() if fix)
    return CellsMissing(" ".join([what, *ends]), fix=" ".join([*fixes, f"Then: {again}"]))
