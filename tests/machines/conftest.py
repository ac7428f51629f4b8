"""One boot of an emulated guest for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.emulated import Guest, missing, start_guest


@pytest.fixture(scope="session")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """A guest of 2 NUMA nodes; skipped where something is missing, but not in CI."""
    yield from _running(tmp_path_factory, 2)


@pytest.fixture(scope="session")
def wide_guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """One of 4 nodes."""
    yield from _running(tmp_path_factory, 4)


def _running(folders: pytest.TempPathFactory, nodes: int) -> Iterator[Guest]:
    lacking = missing()
    if lacking:
        skip_but_in_ci(f"no emulated guest: missing {', '.join(lacking)}")
    running = start_guest(folders.mktemp("guest"), nodes)
    yield running
    running.stop()


def skip_but_in_ci(reason: str) -> None:
    """A machine may lack what a test needs; CI installs it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
