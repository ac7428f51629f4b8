"""A file system of its own, which can be filled."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    """A tmpfs in a new folder; skips the test where none can be mounted."""
    if shutil.which("mount") is None:
        pytest.skip("mount is not installed")
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """Leave not a byte of room on its disk."""
    with file.open("wb", buffering=0) as hog, suppress(OSError):
        for size in (65536, 1):
            while hog.write(b"x" * size) == size:
                pass
