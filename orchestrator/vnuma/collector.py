"""Python's garbage collector, kept out of the way of bulk work and of a command's start."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 10_000
"""So many more objects than before start a search. Python's own 700 search often while modules are loaded,
and find nothing: a sixth of a command's time."""


def collect_rarely() -> None:
    """Search for reference cycles in this process less often, and no more among what is loaded by now."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 50)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector: the work inside makes no reference cycles worth finding.

    Each search goes through every object that is alive: with a million samples, or an estate of thousands
    of VMs, again and again for nothing (a third of the time).
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
