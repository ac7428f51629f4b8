"""A workload of another installed package, on the lab: as docs/workloads/README.md describes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.installed_package import install
from tests.support.looking import settings_now


def test_a_cell_of_an_installed_packages_workload_is_measured_and_restored(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its factor reaches it, its metric and its other figure are stored, the VM is restored."""
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    arms = [{"topology": "1x16", "name": "far", "workload": {"branch": 7}}]
    workload = {"name": "tellers", "sizes": [3]}
    running = lab("paper")
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running, workload=workload, reference="far", arms=arms)

    steps.measure(steps.take())

    found = [stored.sample for stored in steps.samples]
    assert {sample.value for sample in found} == {21.0}
    assert [sample.figures for sample in found] == [{"orders on the books": 3.0 * n} for n in (1, 2)]
    steps.restore()
    assert settings_now(running) == before
