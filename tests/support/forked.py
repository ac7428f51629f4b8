"""Programs of this project, each in a fork of a process that has imported vnuma and Ansible already.

Two thirds of a short command's time is its imports, and every fork has them for nothing. Apart from that it
is a process of its own: its environment, folder, standard streams, signals, children and exit.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import gc
import json
import os
import pty
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from tests.support.installation import ROOT
from vnuma.domain.workloads.kinds import shipped

PROGRAMS = {"vnuma": "vnuma.cli.main", "ansible-playbook": "tests.support.recorded"}

_VNUMA = (
    "ansible_runner",
    "cryptography.x509",
    "jinja2.nativetypes",
    "scipy.special",
    "vnuma.analysis.planning",
    "vnuma.cli.main",
    "vnuma.cli.progress",
    "vnuma.engine.actions.by_hand",
    "vnuma.engine.design_check.check",
    "vnuma.engine.design_check.history",
    "vnuma.engine.design_check.check",
    "vnuma.engine.design_check.designed_vms",
    "vnuma.engine.doctor.diagnose",
    "vnuma.engine.notify",
    "vnuma.engine.restore.restore_leftovers",
    "vnuma.engine.run.start",
    "vnuma.engine.run.supervise",
    "vnuma.estate.snapshot",
    "vnuma.estate.waivers",
    "vnuma.logs.kinds",
    "vnuma.report.archive.read",
    "vnuma.report.archive.write",
    "vnuma.report.check.as_text",
    "vnuma.report.export.results",
    "vnuma.report.published.published",
    "vnuma.report.terminal.run_text",
    "vnuma.store.migrate",
    "vnuma.workloads.cross_join.workload",
)
_ANSIBLE = (
    "ansible.cli.playbook",
    "ansible.inventory.manager",
    "ansible.parsing.dataloader",
    "ansible.plugins.action",
    "ansible.plugins.callback",
    "ansible.plugins.strategy.host_pinned",
    "ansible.template",
    "ansible.utils.plugin_docs",
    "ansible.vars.manager",
)
"""What a fork has for nothing."""

_ENVIRONMENT = dict(os.environ)


@dataclass(frozen=True)
class Program:
    """One of `PROGRAMS`, and how it is run: `limits` are those of setrlimit(2)."""

    name: str
    arguments: Sequence[str]
    env: dict[str, str]
    cwd: str
    timeout_s: float
    limits: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """How it ended: its exit code, and its largest size in memory."""

    code: int
    bytes: int


def run_forked(program: Program) -> tuple[Ended, str, str]:
    """Run it to its end, with nobody at its standard input: how it ended, and both streams' text.

    After its time SIGALRM ends it.
    """
    with TemporaryDirectory(prefix="vnuma-forked-") as folder:
        printed = [Path(folder) / name for name in ("out", "err")]
        server = _server_for(program)
        _begin(server, program, [os.devnull, *map(str, printed)])
        ended = _end_of(server)
        out, err = (path.read_text(encoding="utf-8", errors="backslashreplace") for path in printed)
    assert ended.code != -signal.SIGALRM, f"{program} did not end in time:\n{out}{err}"
    return ended, out, err


def run_on_terminal(program: Program, columns: int, typed: str | None) -> bytes:
    """Run it to its end on a terminal so wide: what it writes there, on both streams.

    `typed` is what somebody types; without it there is nobody.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.write(ours, (typed or "").encode())
    terminal = os.ttyname(theirs)
    server = _server_for(program)
    _begin(server, program, [os.devnull if typed is None else terminal, terminal, terminal])
    watched: list[Any] = [ours, server.stdout]
    said = b""
    while ours in select.select(watched, [], [])[0]:
        said += os.read(ours, 65536)
    ended = _end_of(server)
    os.close(theirs)
    said += b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert ended.code != -signal.SIGALRM, said
    return said


def _read(terminal: int) -> bytes:
    """What comes next; nothing at the end, which Linux tells as an error (pty(7))."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


def _server_for(program: Program) -> subprocess.Popen[str]:
    """Ansible reads its settings when it is imported: with other ones, the program imports it itself."""
    ours, its = (
        {name: value for name, value in env.items() if name.startswith("ANSIBLE_") or name == "HOME"}
        for env in (_ENVIRONMENT, program.env)
    )
    return _server(has_ansible=ours == its and not (Path(program.cwd) / "ansible.cfg").exists())


@cache
def _server(*, has_ansible: bool) -> subprocess.Popen[str]:
    """The process that forks; it ends with this one."""
    command = [sys.executable, "-m", "tests.support.forked", *(_ANSIBLE if has_ansible else ())]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=_ENVIRONMENT
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.communicate()


def _begin(server: subprocess.Popen[str], program: Program, streams: Sequence[str]) -> None:
    assert server.stdin
    server.stdin.write(json.dumps({**asdict(program), "streams": streams}) + "\n")
    server.stdin.flush()


def _end_of(server: subprocess.Popen[str]) -> Ended:
    assert server.stdout
    return Ended(**json.loads(server.stdout.readline()))


def main() -> None:
    """Fork for each line on standard input, and answer with how it ended; a fork returns from here."""
    for name in (*_VNUMA, *sys.argv[1:]):
        import_module(name)
    shipped()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(order)
            return
        _, status, used = os.wait4(child, 0)
        ended = Ended(os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024)
        sys.stdout.write(json.dumps(asdict(ended)) + "\n")
        sys.stdout.flush()


def _become(order: Mapping[str, Any]) -> None:
    """The program itself. It ends as any other does, with what it has registered for its exit."""
    for number, path in enumerate(order["streams"]):
        descriptor = os.open(path, (os.O_RDWR if number else os.O_RDONLY) | os.O_CREAT | os.O_NOCTTY, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for limit, most in order["limits"].items():
        resource.setrlimit(int(limit), (most, most))
    signal.setitimer(signal.ITIMER_REAL, order["timeout_s"])
    if settings := cast(Any, sys.modules.get("ansible.constants")):  # the one that is of a process
        local_tmp = settings.config.get_config_value("DEFAULT_LOCAL_TMP", variables=vars(settings))
        settings.set_constant("DEFAULT_LOCAL_TMP", local_tmp)
    sys.argv = [order["name"], *order["arguments"]]
    try:
        import_module(PROGRAMS[order["name"]]).main()
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        threading._shutdown()  # type: ignore[attr-defined]  # what Python itself does at its end,
        atexit._run_exitfuncs()  # and then it takes apart all that was imported: a second for nothing
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code)


if __name__ == "__main__":
    main()
