"""Memory of processes, in MB of 1024 x 1024 bytes, as Linux tells them in /proc (proc(5))."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


def available() -> bool:
    """Whether this system tells what is asked here."""
    return (PROC / "self" / "smaps_rollup").exists()


@contextmanager
def watched(root: int, every_s: float, *, proportional: bool) -> Iterator[Memory]:
    """Look at a process and its descendants until the `with` ends. PSS costs the kernel a walk each time."""
    memory, end = Memory(), threading.Event()

    def look() -> None:
        while not end.wait(every_s):
            _look(root, memory, proportional=proportional)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        end.set()
        thread.join()


def _look(root: int, memory: Memory, *, proportional: bool) -> None:
    below = descendants(root)
    resident = [_or_zero(PROC / str(pid) / "status", "VmRSS:") for pid in (root, *below)]
    shared = [_or_zero(PROC / str(pid) / "smaps_rollup", "Pss:") for pid in below] if proportional else []
    with memory.lock:
        memory.resident = max(memory.resident, *resident)
        if sum(shared) >= memory.proportional:
            memory.proportional, memory.processes = sum(shared), len(below)


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


def _or_zero(file: Path, name: str) -> float:
    """A process that has ended meanwhile holds nothing."""
    try:
        return _field(file, name)
    except _GONE:
        return 0.0


def _field(file: Path, name: str) -> float:
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return 0.0  # a zombie has no memory fields
