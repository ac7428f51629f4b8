"""What the figures were taken on: nothing that names this very machine."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from vnuma import __version__
from vnuma.lab import find_go, ready_program
from vnuma.sqlserver.client.driver import discover

BUSY = 0.3
"""Processes waiting per core before the benchmark begins, from which its figures are marked."""


def load() -> float:
    """The load average of the last minute, per usable core."""
    return os.getloadavg()[0] / cores()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> dict[str, str]:
    """Words for the page."""
    driver = discover()
    return {
        "CPU": f"{_cpu()}, {cores()} cores usable",
        "memory": _memory(),
        "system": _system(),
        "Python": platform.python_version(),
        "lab built with": _go(),
        "ODBC driver": str(driver),
        "vnuma": __version__,
    }


def _cpu() -> str:
    lines = _lines(Path("/proc/cpuinfo"))
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.0f} GiB"


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, kernel {platform.release()}"


def _go() -> str:
    """The toolchain that the lab's program names, else the one that would build it."""
    go = find_go()
    if go is None:
        return "unknown: there is no Go here"
    answer = subprocess.run(
        [str(go.program), "version", str(ready_program())], capture_output=True, text=True, check=False
    )
    return answer.stdout.split()[-1] if answer.returncode == 0 else go.version


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
