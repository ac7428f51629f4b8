"""One boot of an emulated guest for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.support.emulated import Guest, missing, start_guest


@pytest.fixture(scope="session")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """A guest of 2 NUMA nodes with 2 CPUs and 1; skipped where something is missing."""
    yield from _running(tmp_path_factory, (2, 1))


@pytest.fixture(scope="session")
def wide_guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """One of 4 nodes with a CPU each."""
    yield from _running(tmp_path_factory, (1, 1, 1, 1))


def _running(folders: pytest.TempPathFactory, cpus: Sequence[int]) -> Iterator[Guest]:
    lacking = missing()
    if lacking:
        pytest.skip(f"no emulated guest: missing {', '.join(lacking)}")
    running = start_guest(folders.mktemp("guest"), cpus)
    yield running
    running.stop()
