"""What the tests of a mesh share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose path is short enough for the name of a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="mesh-") as folder:
        monkeypatch.setenv("VNUMA_HOME", f"{folder}/home")
        yield Path(folder) / "home"
