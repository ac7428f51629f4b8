"""Short calls over the network: measured by remote procedure calls from processes, on modelled time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.errors import MeasurementFailed
from vnuma.store.rows import Sample

CALLS: dict[str, Any] = {
    "name": "call_volume",
    "sizes": [1, 3],
    "window_s": 0.3,
    "ramp_s": 0.1,
    "seek_rows": 50,
}


def study(**changes: Any) -> dict[str, Any]:
    """A study of calls, one cell long."""
    return {"workload": CALLS | changes, "reference": "1x16", "arms": ["1x16"]}


def measured(steps: Steps) -> list[Sample]:
    """What the first cell stored, from its shape to its last sample."""
    steps.measure(steps.take())
    return [stored.sample for stored in steps.samples]


@pytest.mark.long
def test_calls_are_counted_by_both_sides_and_proven_to_be_remote_procedure_calls(
    tmp_path: Path, lab: LabFactory
) -> None:
    """One cell: both forms from one and three connections, each rate with its figures and evidence."""
    steps = Steps.prepared(tmp_path / "a", lab("paper"), **study())

    found = measured(steps)

    by_place = {(sample.form, sample.size): sample for sample in found}
    assert set(by_place) == {("noop", 1), ("noop", 3), ("seek", 1), ("seek", 3)}
    for form in ("noop", "seek"):
        assert by_place[form, 3].value > 2 * by_place[form, 1].value  # type: ignore[operator]
    figures = by_place["noop", 3].figures
    assert figures is not None
    assert figures["server CPU per call"] == pytest.approx(33, rel=0.1)
    seen: dict[str, Any] = {fact.key: fact.value for fact in steps.facts("workload")}
    assert seen["noop: sent as"] == "RPC Event: dbo.noop;1"
    assert seen["noop: 3 connections"]["calls by the server"] > 0


def test_a_window_in_which_others_use_the_server_does_not_count(tmp_path: Path, lab: LabFactory) -> None:
    """Another client's requests are in the server's own counter: the attempt ends, and says so."""
    running = lab("paper", cost={"calls": {"others_per_sec": 4000}})
    steps = Steps.prepared(tmp_path / "a", running, **study(sizes=[2], forms=["noop"]))

    with pytest.raises(MeasurementFailed):
        measured(steps)

    assert [stored.sample.value for stored in steps.samples] == [None]
