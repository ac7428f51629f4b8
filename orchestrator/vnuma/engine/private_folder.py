"""A folder for what only a run's own processes may see. What a killed controller left is removed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vnuma.engine.context import home_folder
from vnuma.engine.recover import process_lives


@contextmanager
def private_folder() -> Iterator[Path]:
    """A new folder of mode 0700, removed afterwards; those of dead processes are removed first."""
    base = home_folder() / "private"
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in base.iterdir():
        pid = folder.name.partition("-")[0]
        if pid.isdecimal() and not process_lives(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{os.getpid()}-", dir=base) as new:
        yield Path(new)
