"""A run as OpenTelemetry traces: where a cell's time went. Optional, off by default.

The standard variables (OTEL_EXPORTER_OTLP_ENDPOINT and others) enable it and name the receiver. A run is a
trace, with a span per attempt and below it one per stage. The store has only a stage's total time, so a stage
that recurs, as measuring does, is one span.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING

from vnuma import __version__
from vnuma.errors import EnvironmentProblem, adding
from vnuma.store import attempts, leases, runs
from vnuma.store.rows import Attempt, Run
from vnuma.store.tables import utc_now

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

    from vnuma.store.open import Store

_BATCH = 512


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the standard variables name a receiver and do not disable traces."""
    named = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return any(map(environment.get, named)) and not off and environment.get("OTEL_TRACES_EXPORTER") != "none"


def send_traces(store: Store, run: Run, since: datetime) -> int:
    """Send the attempts that began since then; returns the number of spans.

    Raises EnvironmentProblem without the packages or a receiver.
    """
    exporter = _exporter()
    spans = _spans(store, run, since)
    from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - an extra

    try:
        for first in range(0, len(spans), _BATCH):
            if exporter.export(spans[first : first + _BATCH]) is not SpanExportResult.SUCCESS:
                raise EnvironmentProblem(
                    "Traces were not received.", fix="Check OTEL_EXPORTER_OTLP_ENDPOINT."
                )
    finally:
        exporter.shutdown()
    return len(spans)


def _exporter() -> SpanExporter:
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"
    )
    if protocol != "http/protobuf":
        raise EnvironmentProblem(
            f"Traces are sent as http/protobuf, not as {protocol}.",
            fix="OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, with an endpoint that takes it.",
        )
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        raise EnvironmentProblem(
            "Traces need OpenTelemetry, which this Python environment does not have.",
            fix=adding("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
        OTLPSpanExporter,
    )

    return OTLPSpanExporter()


def _spans(store: Store, run: Run, since: datetime) -> list[ReadableSpan]:
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: PLC0415 - an extra
        InMemorySpanExporter,
    )

    with store.read() as connection:
        now = runs.get_run(connection, run.name)
        names = {vm.id: vm.name for vm in leases.vms_of_run(connection, run.id)}
        found = [one for one in attempts.attempts_of_run(connection, run.id) if one.started_at >= since]
    kept = InMemorySpanExporter()
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "vnuma"}
    provider = TracerProvider(resource=Resource.create({**named, "service.version": __version__}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    _write(provider.get_tracer("vnuma", __version__), now, names, found, since)
    provider.shutdown()
    return list(kept.get_finished_spans())


def _write(tracer: Tracer, run: Run, names: Mapping[int, str], found: list[Attempt], since: datetime) -> None:
    from opentelemetry.trace import Status, StatusCode, set_span_in_context  # noqa: PLC0415 - an extra

    about: dict[str, str | int] = {"vnuma.run": run.name, "vnuma.simulated": run.simulated is not None}
    whole = tracer.start_span(f"run {run.study_name}", start_time=_nanoseconds(since), attributes=about)
    inside = set_span_in_context(whole)
    for attempt in found:
        ended = attempt.ended_at or utc_now()
        cell: dict[str, str | int] = {
            **about,
            "vnuma.vm": names[attempt.vm_id],
            "vnuma.arm": attempt.arm,
            "vnuma.block": attempt.block,
            "vnuma.attempt": attempt.number,
            "vnuma.outcome": str(attempt.outcome or "unfinished"),
        }
        span = tracer.start_span(
            f"cell {attempt.label}", inside, start_time=_nanoseconds(attempt.started_at), attributes=cell
        )
        if attempt.reason:
            span.set_status(Status(StatusCode.ERROR, attempt.reason))
        begun, inner = attempt.started_at, set_span_in_context(span)
        timings = attempt.timings if isinstance(attempt.timings, Mapping) else {}
        for stage, seconds in timings.items():  # in order of first occurrence
            part = tracer.start_span(stage, inner, start_time=_nanoseconds(begun), attributes=cell)
            begun += timedelta(seconds=seconds)
            part.end(_nanoseconds(begun))
        span.end(_nanoseconds(ended))
    whole.end(_nanoseconds(run.finished_at or utc_now()))


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000
