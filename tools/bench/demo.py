"""The demonstration, once, with everything built and installed."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tools.bench.figure import Figure, below
from tools.bench.labs import environment
from tools.bench.startup import VNUMA
from vnuma import lab

DEMO = "`make demo`, set up already"

_TIMEOUT_S = 600


def demo() -> Iterator[Figure]:
    """`vnuma demo`, which is `make demo` after its set-up."""
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-") as folder:
        home = Path(folder)
        start = time.perf_counter()
        with subprocess.Popen(
            [str(VNUMA), "demo"],
            env=environment(home),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=_TIMEOUT_S)
            finally:
                process.terminate()  # it stops its own play and lab
        seconds = time.perf_counter() - start
        lab.down(home / "demo-lab")
    if process.returncode:
        raise RuntimeError(f"vnuma demo ended with {process.returncode}:\n{output[-2000:]}")
    yield below(DEMO, seconds, 120, "s", digits=0).noting("once; 36 cells, both forms, results and report")
