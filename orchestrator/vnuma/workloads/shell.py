"""The shell of a Linux machine, as workloads use it; the engine makes the connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from vnuma.errors import MeasurementFailed


@dataclass(frozen=True)
class Output:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def last_words(self) -> str:
        """Its last line of output, for a sentence about its failure."""
        lines = [line.strip() for line in f"{self.stdout}\n{self.stderr}".splitlines() if line.strip()]
        return lines[-1][:200] if lines else "no message"


class Shell(Protocol):
    """Runs POSIX shell scripts on one machine, as root."""

    def run(self, script: str) -> Output:
        """Run a script to its end. Raises MachineUnreachable when the connection breaks."""


def require(shell: Shell, script: str, what: str) -> str:
    """A script's output. Raises MeasurementFailed with its purpose (`what`) when it fails."""
    done = shell.run(script)
    if done.status:
        raise MeasurementFailed(
            f"{what} failed with status {done.status}: {done.last_words}.",
            fix="Run it on the machine by hand; docs/workloads/page_cache.md has the commands.",
        )
    return done.stdout
