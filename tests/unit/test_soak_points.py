"""Where the soak strikes: every stage, process and signal, and its table's content."""

from __future__ import annotations

from collections.abc import Sequence

from tools.soak.points import EVERY, PROCESSES, SIGNALS, Chooser, Point, Stage, Strike, Tally, Victim


def strike(
    tally: Tally, count: int, strikes: Sequence[Strike] = SIGNALS, *, too_late: frozenset[Stage] = frozenset()
) -> list[Point]:
    """So many points; those in some stages come too late."""
    chooser = Chooser(7, strikes, tally)
    struck = []
    for _ in range(count):
        point = chooser.next()
        tally.count(point, struck=point.stage not in too_late)
        struck.append(point)
    return struck


def test_every_kind_of_strike_is_struck_once_before_one_comes_twice() -> None:
    """Eight stages, four targets, three signals."""
    assert len({point.kind for point in strike(Tally(), 96)}) == 96


def test_strikes_that_are_never_in_time_do_not_keep_the_others_waiting() -> None:
    """They are tried again, and the rest is struck all the same."""
    tally = Tally()

    strike(tally, 260, too_late=frozenset({Stage.STORING}))

    assert {kind[0] for kind in tally.never if kind[1] in PROCESSES} == {Stage.STORING}
    assert tally.missed.total() > 9


def test_one_seed_gives_one_row() -> None:
    """Delays too."""
    assert strike(Tally(), 20) == strike(Tally(), 20)


def test_the_table_counts_each_stage_process_and_signal() -> None:
    """What was never struck is named, and a soak without strikes fails."""
    tally = Tally()
    assert not tally.good
    strike(tally, 8, [Strike.SLOW_GUEST])
    tally.struck[Stage.QUERY, Victim.WORKER, Strike.KILL] += 4

    lines = tally.report().splitlines()

    assert tally.good
    row = next(line for line in lines if line.startswith("worker KILL"))
    assert row.split() == ["worker", "KILL", *"00000400", "4"]
    assert len(tally.never) == len(EVERY) - 3


def test_a_restore_that_comes_anyway_is_struck_until_it_was_often_enough() -> None:
    """One more strike than the kind that was struck least."""
    tally = Tally()
    chooser = Chooser(5, SIGNALS, tally)

    turns = 0
    while point := chooser.at_restore():
        tally.count(point, struck=True)
        turns += 1

    assert turns == 12 * 2
    assert {kind[0] for kind in tally.struck} == {Stage.RESTORE}


def test_a_soak_of_some_strikes_has_no_other() -> None:
    """Each in its stages."""
    wanted = [Strike.WRITE_AUDIT, Strike.DROPPED]

    assert {point.strike for point in strike(Tally(), 20, wanted)} == set(wanted)
