"""The duration of a run's analysis and the size of its page, in a process of its own."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.report.build import Story, build
from tools.bench.figure import Figure, limited
from vnuma.report.model.model import load_run
from vnuma.report.page.render import page_text
from vnuma.store.open import default_url, open_store

STUDY = """\
name: bench
vms: [{vms}]
vcpus: 16
reference: 1x16
arms: [1x16, 2x8, 4x4, 8x2, 16x1]
design: {{blocks: 8, seed: 7, iterations: {iterations}}}
workload: {{sizes: [500, 1000, 2000, 3000], forms: [client, server]}}
"""
MANY_VMS, MANY_ITERATIONS = 53, 50


def analysis(*, whole: bool) -> Iterator[Figure]:
    """A study of 40 boots and its page; with `whole`, a run of a million samples too."""
    seconds, _, drawing, page = _measured(vm_count=1, iterations=3, page=True)
    note = "two forms, three metrics; planning simulated where an arm is undecided"
    yield limited("Reading and analysing 48 cells of 5 arms and 4 sizes", seconds, 3, "s", note=note)
    yield limited("Its page", page / 1e6, 3, "MB", note=f"drawn in {drawing:.1f} s")
    if whole:
        samples = MANY_VMS * 48 * 8 * MANY_ITERATIONS
        seconds, memory, *_ = _measured(vm_count=MANY_VMS, iterations=MANY_ITERATIONS, page=False)
        yield limited(f"The same of {samples:,} samples, {MANY_VMS} VMs", seconds, 8, "s", digits=1)
        yield limited("The same, peak resident memory", memory, 400, "MB", digits=0)


def _measured(*, vm_count: int, iterations: int, page: bool) -> tuple[float, ...]:
    """Seconds to read and analyse, peak MB, seconds to draw the page, and its bytes."""
    vms = ", ".join(f"vm{number:02}" for number in range(1, vm_count + 1))
    with tempfile.TemporaryDirectory() as folder:
        url = default_url(Path(folder))
        build(open_store(url), Story(STUDY.format(vms=vms, iterations=iterations)))
        command = [sys.executable, "-m", "tools.bench.analysis", url, "page" if page else "no page"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return tuple(map(float, done.stdout.split()))


def _child(url: str, wanted: str) -> None:
    """Print the seconds of reading, this process's peak MB, the seconds of drawing, and the page's bytes."""
    store = open_store(url, create=False)
    start = time.perf_counter()
    loaded = load_run(store, "latest")
    read = time.perf_counter()
    page = len(page_text(loaded).encode()) if wanted == "page" else 0
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(read - start, memory, time.perf_counter() - read, page)


if __name__ == "__main__":
    _child(*sys.argv[1:])
