"""How long the command line takes to answer, against a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tools.bench.figure import Figure, limited, spread

VNUMA = Path(sys.executable).parent / "vnuma"


def startup(repeats: int) -> Iterator[Figure]:
    """`vnuma --help` and `python -c pass` by turns."""
    ours: list[float] = []
    bare: list[float] = []
    commands = ((ours, [str(VNUMA), "--help"]), (bare, [sys.executable, "-c", "pass"]))
    for _ in range(repeats + 1):
        for times, command in commands:
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
    ours, bare = ours[1:], bare[1:]  # the first of each fills the page cache
    ratio = median(ours) / median(bare)
    yield limited(
        "`vnuma --help`",
        median(ours),
        0.4,
        "s",
        peer=f"{ratio:.1f} x `python -c pass` ({median(bare):.3f} s)",
        note=f"{repeats} runs: {spread(ours, unit='s')}",
    )
