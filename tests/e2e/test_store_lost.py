"""A store that is lost while VMs are changed: what is said then is exit code 7."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.engine.run.supervise import put_back
from vnuma.errors import NotAtBaseline


def test_a_vm_that_cannot_be_put_back_for_want_of_the_store_is_named(tmp_path: Path, lab: LabFactory) -> None:
    """The store is gone: that the VM may be altered outranks the store's own trouble."""
    steps = Steps.prepared(tmp_path / "a", lab())
    steps.shape(steps.take())
    restoration = steps.restoration()
    (steps.home / "vnuma.db").rename(steps.home / "gone.db")

    _, problems = put_back(steps.store, steps.run, steps.study, {"sql16": steps.target})
    with pytest.raises(NotAtBaseline, match="sql16 may not be at its baseline"):
        restoration.restore()

    assert [type(problem) for problem in problems] == [NotAtBaseline]
    assert "sql16" in str(problems[0])
