"""Limit Python's garbage collector during bulk work and at a command's start."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 10_000
"""Number of new objects that starts a collection. Python's own 700 starts many during imports, which find
nothing: a sixth of a command's time.
"""


def collect_rarely() -> None:
    """Collect garbage less often in this process, and never among the objects loaded so far."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 50)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector, for work that creates no reference cycles worth finding.

    Each collection visits every live object: with a million samples, or thousands of VMs, that would take a
    third of the time for nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
