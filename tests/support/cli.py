"""The command line in a process of its own, as a user runs it."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.support.forked import Program, run_forked, run_on_terminal
from vnuma.cli.main import main

TIMEOUT_S = 600


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
    limits = {resource.RLIMIT_FSIZE: largest_file_kb * 1024} if largest_file_kb else {}
    ended, out, err = run_forked(_vnuma(arguments, env, cwd, timeout_s=timeout_s, limits=limits))
    return Ran(ended.code, out, err)


def _vnuma(
    arguments: Sequence[str | Path], env: Mapping[str, str] | None, cwd: Path | None = None, **how: Any
) -> Program:
    environment = {**os.environ, **(env or {})}
    return Program("vnuma", list(map(str, arguments)), environment, str(cwd or Path.cwd()), **how)


def vnuma_here(*arguments: str | Path) -> Ran:
    """Run `vnuma` to its end in this process, which has its imports already: saves a second or two.

    For commands that start no play: ansible-runner would leave its handler of SIGINT behind.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        _time_limit(TIMEOUT_S),
        mock.patch.object(sys, "argv", ["vnuma", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Ran(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def in_json(*command: str | Path) -> Any:
    """The document that a command tells a program."""
    return json.loads(vnuma_here(*command, "--format", "json").out)


def status(*options: str | Path) -> Any:
    """What `vnuma status` tells a program: `runs`, and VMs that are `not_at_baseline`."""
    return in_json("status", *options)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Fail the test, with the place where it hangs, after that time.

    A call outside Python is not interrupted: pytest's own limit (pyproject.toml) ends its process.
    """

    def expired(_signal: int, _frame: object) -> None:
        pytest.fail(f"vnuma did not end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def on_terminal(
    columns: int, *arguments: str | Path, env: Mapping[str, str] | None = None, typed: str | None = None
) -> list[str]:
    """The lines that `vnuma` prints on a terminal so wide, with what it says on standard error.

    `typed` is what somebody types there; without it there is nobody.
    """
    program = _vnuma(arguments, {"TERM": "xterm", **(env or {})}, timeout_s=TIMEOUT_S)
    program.env.pop("COLUMNS", None)  # of whoever started the tests: a worker of xdist has its own
    said = run_on_terminal(program, columns, typed)
    return said.decode("utf-8").replace("\r\n", "\n").splitlines()


def command(*arguments: str | Path) -> list[str]:
    """The command line for `vnuma`, by the interpreter that runs the tests."""
    return [sys.executable, "-m", "vnuma", *map(str, arguments)]
