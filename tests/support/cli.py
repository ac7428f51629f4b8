"""The command line in a process of its own, as a user runs it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 300


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All that it said."""
        return self.out + self.err


def vnuma(
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    largest_file_kb: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Ran:
    """Run `vnuma` to its end; the test's environment, VNUMA_HOME above all, is passed on.

    `largest_file_kb` makes the disk full for it: no file may grow beyond that.
    """

    def limit() -> None:
        if largest_file_kb:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file_kb * 1024,) * 2)

    done = subprocess.run(
        command(*arguments),
        env={**os.environ, **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        stdin=subprocess.DEVNULL,
        preexec_fn=limit,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def command(*arguments: str | Path) -> list[str]:
    """The command line for `vnuma`, by the interpreter that runs the tests."""
    return [sys.executable, "-m", "vnuma", *map(str, arguments)]
