"""What a load against the log gives: time for each insert, spins, cycles by the server's own clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.sqlserver.instance.call_counters import Counters, Spinlock, difference, was_cleared
from vnuma.workloads.log_spinlock.load import Loaded, buckets, session_batch
from vnuma.workloads.log_spinlock.workload import figures, reading


def counters(spins: int, flush_ms: int = 0, ms: int = 0, ticks: int = 0) -> Counters:
    """One reading."""
    return Counters({"LOGCACHE_ACCESS": Spinlock(spins, spins // 250, spins // 2500)}, 1, flush_ms, ticks, ms)


def test_the_published_arithmetic_with_the_right_clock() -> None:
    """2.4 GHz typed as 240,000,000 gave 111 and 3 cycles per spin; it is ten times as many."""
    near = figures(counters(113_246_628, ms=10_434, ticks=25_041_600_000), 25_000_000, 10.434, 5)
    far = figures(counters(6_692_284_057, ms=18_388, ticks=44_131_200_000), 25_000_000, 18.388, 5)

    assert near["CPU cycles per spin"] == pytest.approx(1105.6, abs=0.1)
    assert far["CPU cycles per spin"] == pytest.approx(32.97, abs=0.01)
    assert near["spins per insert"] == pytest.approx(4.53, abs=0.01)
    assert far["spins per insert"] / near["spins per insert"] == pytest.approx(59.1, abs=0.05)


def test_a_reading_is_the_whole_loads_time_for_each_insert() -> None:
    """Its window is the elapsed time; what was counted is kept with it."""
    spent = counters(1_000, flush_ms=7, ms=2_000, ticks=4_800_000_000)
    made = reading(Loaded(2.0, 1.9, spent, (1, 2)), inserts=1_000_000, rows=2_000_000, cpus=2)

    assert (made.elapsed_ms, made.value, made.rows) == (2000.0, 2.0, 2_000_000)
    assert made.figures is not None
    assert made.figures["log flush wait"] == 7.0
    assert isinstance(made.execution, dict)
    assert made.execution["clock_hz"] == 2.4e9
    assert made.execution["spinlocks"] == {"LOGCACHE_ACCESS": {"spins": 1000, "collisions": 4, "backoffs": 0}}


def test_what_is_not_known_is_left_out() -> None:
    """No cycles without a clock or spins, no spins where the version does not name the spinlock."""
    for short in (counters(10, ms=99, ticks=5), counters(0, ms=2000, ticks=5)):
        assert "CPU cycles per spin" not in figures(short, 1, 1.0, 1)
    assert figures(Counters({}, 0, 3, 5, 5), 1, 1.0, 1) == {"log flush wait": 3.0}


def test_counters_that_somebody_cleared_are_noticed() -> None:
    """They are lower than before, so there is no difference."""
    assert was_cleared(difference(counters(500), counters(20)))
    assert not was_cleared(difference(counters(500), counters(500)))


@given(st.integers(1, 500_000_000))
def test_a_hash_index_has_a_bucket_for_each_row(rows: int) -> None:
    """The next power of two, and never more than the server takes."""
    found = buckets(rows)
    assert found & (found - 1) == 0
    assert rows <= found <= max(2 * rows, 1024)


@pytest.mark.parametrize(("form", "procedure"), [("native", "usp_insertIm"), ("disk", "usp_insert")])
def test_a_sessions_clock_runs_between_taking_the_lock_and_giving_it_back(form: str, procedure: str) -> None:
    """It starts with the common start. A lock freed late would keep the next load waiting."""
    insert = f"{procedure} @session = 3"
    batch = session_batch(form, 3, 200)
    steps = ("sp_getapplock", "SET @began", insert, "SET @ended", "sp_releaseapplock")

    assert sorted(steps, key=batch.index) == list(steps)
