"""File descriptors reserved for restoring VMs, whatever a run leaves open and whatever the limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from vnuma.errors import EnvironmentProblem

# Six are enough on the lab: three files of the store, the lock, and sockets of vCenter and SQL Server. Name
# lookups, a late-loaded driver or module and folders to remove need some more.
SPARE = 32


@contextmanager
def spare_descriptors(count: int = SPARE) -> Iterator[None]:
    """Hold that many descriptors open and free them at the end.

    Raises EnvironmentProblem, before any change, where this process may not open that many.
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
