"""Memory of processes, in MB of 1024 x 1024 bytes, as Linux tells them in /proc (proc(5))."""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


@dataclass
class Memory:
    """Peaks of a process tree. `resident` is of its largest process, `proportional` the sum without its root.

    Proportional: a page that n processes share counts 1/n for each (PSS).
    """

    resident: float = 0.0
    proportional: float = 0.0
    processes: int = 0


def available() -> bool:
    """Whether this system tells what is asked here."""
    return (PROC / "self" / "smaps_rollup").exists()


def watch(root: subprocess.Popen[bytes], every_s: float, most_s: float, *, proportional: bool) -> Memory:
    """Look at a process and its descendants until it ends. PSS costs the kernel a walk each time."""
    memory, until = Memory(), time.monotonic() + most_s
    while time.monotonic() < until:
        with suppress(subprocess.TimeoutExpired):
            root.wait(every_s)
            break
        below = descendants(root.pid)
        resident = [_megabytes(PROC / str(pid) / "status", "VmRSS:") for pid in (root.pid, *below)]
        memory.resident = max(memory.resident, *resident)
        shared = sum(_megabytes(PROC / str(pid) / "smaps_rollup", "Pss:") for pid in below if proportional)
        if shared >= memory.proportional:
            memory.proportional, memory.processes = shared, len(below)
    return memory


def descendants(root: int) -> list[int]:
    """Every process below `root`."""
    children: dict[int, list[int]] = defaultdict(list)
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                # The program's name, in brackets, may hold spaces; the parent is the second field after it.
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
            except _GONE:
                continue
            children[int(fields.split()[1])].append(int(folder.name))
    found, todo = [], [root]
    while todo:
        below = children[todo.pop()]
        found += below
        todo += below
    return found


def _megabytes(file: Path, name: str) -> float:
    """A process that has ended meanwhile holds nothing, and a zombie has no such field."""
    with suppress(*_GONE):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
    return 0.0
