"""A study of this machine: what `vnuma run` of page_cache takes of its memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.bench import processes
from tools.bench.figure import Figure, not_evaluated, untargeted
from tools.bench.labs import environment

TIMEOUT_S = 600
WHAT = "page_cache on this machine, largest process of `vnuma run`, peak resident memory"


def machines(passes: int, size_mb: int) -> Iterator[Figure]:
    """A pass for each block, of one file: the client asks by scripts and keeps no byte of the file."""
    if os.geteuid() or not shutil.which("numactl"):
        yield not_evaluated(WHAT, "", "Needs root, which drops the page cache, and numactl.")
        return
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-", dir="/var/tmp") as name:
        folder = Path(name)
        study = folder / "study.yml"
        study.write_text(json.dumps(_study(folder, passes, size_mb)), encoding="utf-8")
        memory = _run(study, folder)
    yield untargeted(
        WHAT,
        f"{memory.resident:.0f} MB",
        f"{passes} passes over a file of {size_mb} MB; peak PSS of the play's {memory.processes} processes "
        f"{memory.proportional:.0f} MB",
    )


def _study(folder: Path, passes: int, size_mb: int) -> dict[str, object]:
    return {
        "name": "bench",
        "vm": "localhost",
        "reference": "local",
        "arms": [{"topology": "keep", "name": "local"}],
        "design": {"blocks": passes, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1},
        "workload": {"name": "page_cache", "sizes": [size_mb], "forms": ["single"], "folder": str(folder)},
    }


def _run(study: Path, home: Path) -> processes.Memory:
    """Run it to its end, watching its processes. RuntimeError with its last words if it fails."""
    log = home / "run.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "vnuma", "run", str(study)],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        with processes.watched(process.pid, 0.3, proportional=True) as memory:
            code = process.wait(timeout=TIMEOUT_S)
    if code:
        raise RuntimeError(f"vnuma run ended with {code}:\n{log.read_text(encoding='utf-8')[-2000:]}")
    return memory
