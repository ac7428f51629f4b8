"""A run's steps as OpenTelemetry traces, received over HTTP on loopback."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.report.build import Lost, Story, build, study_text
from tests.support.otlp import receiver
from tests.support.stores import new_store
from vnuma.engine.run.traces import send_traces, wanted
from vnuma.errors import EnvironmentProblem
from vnuma.store import attempts

STORY = Story(text=study_text(sizes="500", forms="client"), lost={("4x4", 1): (Lost(),)}, stop_after=6)
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def test_each_attempt_is_a_span_with_its_stages_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one trace; stages follow each other; a failure says why; a resumed run sends what is new."""
    store = new_store(tmp_path / "vnuma.db")
    run = build(store, STORY)
    with store.read() as connection:
        stored = attempts.attempts_of_run(connection, run.id)
    with receiver() as received:
        monkeypatch.setenv(ENDPOINT, received.url)
        number = send_traces(store, run, stored[0].started_at)
        again = send_traces(store, run, stored[-1].started_at + timedelta(seconds=1))

    spans = received.spans[:number]
    cells = [span for span in spans if span.name.startswith("cell ")]
    (whole,) = (span for span in spans if span.name == "run quick")
    assert received.services == {"vnuma"}
    assert again == 1
    assert len(cells) == len(stored)
    assert {span.parent_span_id for span in cells} == {whole.span_id}
    assert {span.trace_id for span in spans} == {whole.trace_id}
    assert [span.status.message for span in cells if span.status.message] == ["tools_timeout"]
    for cell in cells:
        parts = [span for span in spans if span.parent_span_id == cell.span_id]
        assert parts
        assert parts[0].start_time_unix_nano == cell.start_time_unix_nano
        assert all(one.end_time_unix_nano == two.start_time_unix_nano for one, two in pairwise(parts))


@pytest.mark.parametrize(
    ("status", "protocol", "asked"), [(400, "http/protobuf", True), (200, "grpc", False)]
)
def test_a_refusal_and_another_protocol_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, protocol: str, asked: bool
) -> None:
    """Neither is a bug; what is not spoken is not tried."""
    store = new_store(tmp_path / "vnuma.db")
    run = build(store, STORY)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    with receiver(status) as received:
        monkeypatch.setenv(ENDPOINT, received.url)
        with pytest.raises(EnvironmentProblem):
            send_traces(store, run, run.created_at)

    assert bool(received.spans) is asked


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({}, False),
        ({ENDPOINT: "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({ENDPOINT: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, False),
        ({ENDPOINT: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_only_the_standard_variables_send_traces(environment: dict[str, str], sent: bool) -> None:
    """Nothing is sent by default."""
    assert wanted(environment) is sent
