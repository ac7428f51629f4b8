"""Run command lines of vnuma, one after the other, each in a fork of a process that has imported it already.

Reads a line of JSON for each (arguments and folder) on standard input and answers with one: exit code,
what it printed, seconds, and the most memory that it held. Each has limits of memory and time.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.main import get_command

MOST_BYTES = 500_000_000
MOST_SECONDS = 10

_MODULES = (
    "vnuma.cli.main",
    "vnuma.analysis.planning",
    "vnuma.engine.design_check.check",
    "vnuma.engine.design_check.earlier_check",
    "vnuma.engine.design_check.filters",
    "vnuma.engine.design_check.planned_host",
    "vnuma.estate.snapshot",
    "vnuma.estate.waivers",
    "vnuma.logs.kinds",
    "vnuma.report.archive.read",
    "vnuma.report.archive.write",
    "vnuma.report.check.as_text",
    "vnuma.report.published.published",
    "vnuma.store.migrate",
)
"""What every fork begins with; main's verbs import these when they are called."""


def main() -> None:
    """Answer until standard input ends."""
    for name in _MODULES:
        import_module(name)
    cli: Any = import_module("vnuma.cli.main")
    cli.app = get_command(cli.app)  # half of a command's start, and the same for each
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        sys.stdout.write(json.dumps(_run(order["arguments"], Path(order["folder"]))) + "\n")
        sys.stdout.flush()


def _run(arguments: list[str], folder: Path) -> dict[str, Any]:
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(arguments, folder)
    _, status, used = os.wait4(child, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "printed": "".join(
            (folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out.txt", "err.txt")
        ),
        "seconds": used.ru_utime + used.ru_stime,
        "waited": time.monotonic() - begun,
        "bytes": used.ru_maxrss * 1024,
    }


def _become(arguments: list[str], folder: Path) -> None:
    """The command itself; its time is counted on the processor, so that a busy machine fails nothing."""
    os.chdir(folder)
    os.environ["VNUMA_HOME"] = str(folder / "home")
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    signal.alarm(6 * MOST_SECONDS)
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.argv = ["vnuma", *arguments]
    code = 1
    try:
        from vnuma.cli.main import main as vnuma  # noqa: PLC0415 - imported before the fork

        vnuma()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
