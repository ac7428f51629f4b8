"""Timed iterations read in bulk: the same as one by one, and only those that count."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.store.build import claim, new_vm, samples
from vnuma.analysis.records import Series
from vnuma.store import attempts
from vnuma.store import samples as sample_rows
from vnuma.store.open import Store
from vnuma.store.rows import Outcome
from vnuma.store.timed import timed, timed_series


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
        found = list(timed(conn, leased.run.id))
        one_by_one = [
            stored.sample
            for stored in sample_rows.iter_samples(conn, leased.run.id)
            if stored.attempt_outcome is Outcome.VALID
        ]
        others = timed_series(conn, leased.run.id, leased.vm.id + 1)

    expected = [item for item in one_by_one if not item.warmup and item.reason is None]
    assert [item.iteration for item in expected] == [1, 2, 3, 9]
    (one,) = found
    assert one.series == Series(
        *("arm0", "arm0", 0, "sql16", expected[0].size, expected[0].form),
        *(
            tuple(getattr(item, name) for item in expected)
            for name in ("elapsed_ms", "cpu_ms", "client_ms", "value", "figures")
        ),
    )
    assert [text and json.loads(text) for text in one.waits] == [
        *({"ASYNC_NETWORK_IO": {"tasks": n}} for n in (1, 2, 3)),
        None,
    ]
    assert others == []
