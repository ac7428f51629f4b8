"""Figures that depend on the machine, beside what was aimed at: no test fails for being slow.

make bench
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from vnuma import lab

VNUMA = Path(sys.executable).parent / "vnuma"
REPEATS = 7


def seconds(action: Callable[[], object], *, after: Callable[[], object] = lambda: None) -> float:
    """The median wall time of an action; `after` tidies up, untimed."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
        after()
    return statistics.median(times)


def vnuma(*arguments: str) -> None:
    """Run the command line as a user does."""
    subprocess.run([str(VNUMA), *arguments], check=True, capture_output=True)


def resident_mb(pid: int) -> float:
    """The memory that a process holds (VmRSS in proc(5)), in MB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(kilobytes) / 1024


def report(what: str, figure: float, unit: str, aim: str) -> None:
    """One line: figure, unit, and the aim."""
    print(f"{what:<34}{figure:>8.2f} {unit:<4} aim: {aim}")


def main() -> None:
    """Measure and print."""
    print(f"median of {REPEATS}, Python {sys.version.split()[0]}")
    report("vnuma --help", seconds(lambda: vnuma("--help")), "s", "below 0.4")
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        lab.ready_program()
        up = seconds(lambda: lab.up(state_dir=state), after=lambda: lab.down(state))
        report("lab, from start to ready", up, "s", "below 1")
        pid = lab.up(state_dir=state).pid
        if sys.platform == "linux":
            report("lab, resident memory", resident_mb(pid), "MB", "below 100")
        lab.down(state)


if __name__ == "__main__":
    main()
