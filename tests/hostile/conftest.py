"""One run and its archive for all modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.archives import Files, archive_in, archived_in
from tests.support.made_once import made_once


@pytest.fixture(scope="session")
def archived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Files]:
    """A store with a run, and those files of the run's archive from which it is read."""
    return archived_in(made_once(tmp_path_factory, "archived", archive_in))
