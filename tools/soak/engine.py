"""`vnuma run` in a process of its own, forked from one that has imported all that it needs.

A start of Python with these imports takes more than all else that an engine does before its play, and proves
nothing: what is killed is the same command in the same kind of process.
"""

from __future__ import annotations

import os
import sys
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "vnuma.cli.main",
        "vnuma.cli.progress",
        "vnuma.engine.lease.hours",
        "vnuma.engine.access.inventory",
        "vnuma.engine.run.supervise",
        "vnuma.store.migrate",
        "ansible_runner",
        "ansible.inventory.manager",
        "ansible.parsing.dataloader",
        "ansible.vars.manager",
    ]
)


def start_engine(words: list[str], home: Path, log: Path) -> ForkServerProcess:
    """Begin a `vnuma` command under this home, with its output at the end of that file."""
    engine = _FORKS.Process(target=_vnuma, args=(words, home, log))
    engine.start()
    return engine


def _vnuma(words: list[str], home: Path, log: Path) -> None:
    os.setsid()
    written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, written), (2, written)):
        os.dup2(file, number)
    os.environ["VNUMA_HOME"] = str(home)
    sys.argv = ["vnuma", *words]
    from vnuma.cli.main import main  # noqa: PLC0415 - in the fork server, not in the soak itself

    main()
