"""Programs of this project, each in a fork of a process that has imported vnuma already.

Two thirds of a short command's time is its imports, and every fork has them for nothing. Apart from that it
is a process of its own: its environment, folder, standard streams, signals, children and exit.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.installation import ROOT

PROGRAMS = {"vnuma": "vnuma.cli.main", "ansible-playbook": "ansible.cli.playbook"}

_MODULES = (
    "ansible_runner",
    "cryptography.x509",
    "jinja2.nativetypes",
    "vnuma.analysis.planning",
    "vnuma.cli.main",
    "vnuma.cli.progress",
    "vnuma.engine.ansible_api.actions_by_hand",
    "vnuma.engine.doctor.diagnose",
    "vnuma.engine.notify.notifier",
    "vnuma.engine.restore.restore_leftover",
    "vnuma.engine.run.recover",
    "vnuma.engine.run.start",
    "vnuma.engine.run.supervise",
    "vnuma.report.export.results",
    "vnuma.report.terminal.run_text",
    "vnuma.store.migrate",
    "vnuma.workloads.cross_join.workload",
)
"""What a fork has for nothing. Ansible is not among them: it reads its settings when it is imported."""

_ENVIRONMENT = dict(os.environ)


def run_forked(
    program: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout_s: float,
    largest_file_kb: int | None = None,
) -> tuple[int, str, str]:
    """Run one of `PROGRAMS` to its end: exit code, and what it printed on both streams.

    With nobody at its standard input. After `timeout_s` SIGALRM ends it.
    """
    with TemporaryDirectory(prefix="vnuma-forked-") as folder:
        streams = [Path(folder) / name for name in ("out", "err")]
        order = {
            "program": program,
            "arguments": list(arguments),
            "env": dict(env),
            "cwd": str(cwd),
            "streams": list(map(str, streams)),
            "timeout_s": timeout_s,
            "largest_file_kb": largest_file_kb,
        }
        server = _server()
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (path.read_text(encoding="utf-8") for path in streams)
    assert code != -signal.SIGALRM, f"{program} did not end within {timeout_s:g} s:\n{out}{err}"
    return code, out, err


@cache
def _server() -> subprocess.Popen[str]:
    """The process that forks; it ends with this one."""
    command = [sys.executable, "-m", "tests.support.forked"]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=_ENVIRONMENT
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.communicate()


def main() -> None:
    """Fork for each line on standard input, and answer with the exit code; a fork returns from here."""
    for name in _MODULES:
        import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(order)
            return
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(order: Mapping[str, Any]) -> None:
    """The program itself. It ends as any other does, with what it has registered for its exit."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate([nowhere, *map(_new, order["streams"])]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = os.fdopen(0, closefd=False)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    if most := order["largest_file_kb"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most * 1024,) * 2)
    signal.setitimer(signal.ITIMER_REAL, order["timeout_s"])
    program = order["program"]
    sys.argv = [program, *order["arguments"]]
    import_module(PROGRAMS[program]).main()


def _new(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)


if __name__ == "__main__":
    main()
