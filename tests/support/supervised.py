"""A run supervised in this process, struck once its VM is in an arm's shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.steps import Steps
from tests.support.lab import LabHandle
from vnuma.engine.run.progress import Progress
from vnuma.engine.run.run_outcome import RunOutcome
from vnuma.engine.run.supervise import supervise


@dataclass
class Struck:
    """Watches a run; at its first look after a VM was powered off, `strike` happens, once."""

    lab: LabHandle
    strike: Callable[[], None]
    done: bool = False

    def __call__(self, _progress: Progress) -> None:
        """Called about once a second while the play runs."""
        if not self.done and any(event["event"] == "power_off" for event in self.lab.events):
            self.done = True
            self.strike()

    def run(self, steps: Steps) -> RunOutcome:
        """Supervise the whole run of these steps."""
        return supervise(steps.work, self)
