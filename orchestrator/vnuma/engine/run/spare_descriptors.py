"""File descriptors kept free for putting VMs back, whatever a run leaves open or what limit it meets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from vnuma.errors import EnvironmentProblem

# Six are enough on the lab: a store's three files, the lock, vCenter's socket, SQL Server's. Names to
# resolve, a driver or module that is loaded late, and folders to remove take some more.
SPARE = 32


@contextmanager
def spare_descriptors(count: int = SPARE) -> Iterator[None]:
    """Hold so many descriptors open, and let them go at the end: then as many files can be opened.

    Raises EnvironmentProblem where this process may not open so many: before anything is changed.
    """
    with ExitStack() as held:
        try:
            for _ in range(count):
                held.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise EnvironmentProblem(
                f"This process may open too few files ({error.strerror}): {count} must be kept free to "
                "restore VMs.",
                fix="ulimit -n 1024",
            ) from error
        yield
