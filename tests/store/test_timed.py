"""Timed samples read in bulk: the same as one by one, and only those that count."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.store.build import claim, new_vm, samples
from vnuma.analysis.records import Sample
from vnuma.store import attempts
from vnuma.store import samples as sample_rows
from vnuma.store.open import Store
from vnuma.store.rows import Outcome
from vnuma.store.timed import timed_batches, timed_samples


def as_analysed(stored: sample_rows.StoredSample) -> Sample:
    """One stored sample as the analysis takes it: field by field, with its place."""
    own, place = vars(stored.sample), vars(stored)
    values: dict[str, Any] = {name: own.get(name, place.get(name)) for name in Sample._fields}
    return Sample(**{**values, "outcome": stored.sample.outcome})


def test_only_timed_samples_of_boots_that_count_are_read(store: Store) -> None:
    """No warm-up, no failed iteration, nothing of an attempt that does not count; figures are kept."""
    leased = new_vm(store, arms=1)
    for outcome, reason in ((Outcome.INTERRUPTED, "interrupted"), (Outcome.VALID, None)):
        got = claim(store, leased)
        written = [*samples(1, first=0, warmup=True), *samples(3)]
        written.append(replace(written[-1], iteration=9, value=7.5, figures={"spins": 2.0}, waits=None))
        written.append(replace(samples(1)[0], iteration=10, elapsed_ms=None, reason="connection_dropped"))
        with store.write() as conn:
            sample_rows.add_samples(conn, got.id, leased.token, written)
            attempts.finish(conn, got.id, leased.token, outcome, reason=reason)
    with store.read() as conn:
        (batch,) = timed_batches(conn, leased.run.id)
        one_by_one = [
            stored
            for stored in sample_rows.iter_samples(conn, leased.run.id)
            if stored.attempt_outcome is Outcome.VALID
        ]
        others = timed_samples(conn, leased.run.id, leased.vm.id + 1)

    expected = [item for item in one_by_one if not item.sample.warmup and item.sample.reason is None]
    by_iteration = sorted(zip(batch.samples, batch.waits, strict=True), key=lambda entry: entry[0].iteration)
    assert [sample.iteration for sample, _ in by_iteration] == [1, 2, 3, 9]
    assert [sample for sample, _ in by_iteration] == sorted(
        map(as_analysed, expected), key=lambda sample: sample.iteration
    )
    assert [text and json.loads(text) for _, text in by_iteration] == [
        *({"ASYNC_NETWORK_IO": {"tasks": n}} for n in (1, 2, 3)),
        None,
    ]
    assert others == []
