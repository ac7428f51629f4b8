"""An installed vnuma, for tests that use it as a user does."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""


@dataclass(frozen=True)
class Installation:
    """An installed vnuma, used from a folder of its own with an empty environment."""

    bin: Path
    scripts: Path
    home: Path

    def run(self, program: str, *arguments: str) -> str:
        """Standard output of a program of this installation; CalledProcessError shows the rest."""
        own = self.bin / program
        command = [str(own)] if own.exists() else [str(self.bin / "python"), str(self.scripts / program)]
        environment = {
            "PATH": f"{self.bin}:{self.scripts}:/usr/bin:/bin",
            "HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            [*command, *arguments],
            cwd=self.home,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout


def dist(folder: Path) -> Path:
    """Run what `make dist` runs; the folder that it fills."""
    command = [sys.executable, "-m", "tools.dist", "--outdir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder
