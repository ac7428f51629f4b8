"""What ended the work is reported first; a failure to undo it is added, and does not replace it."""

from __future__ import annotations

import pickle

import pytest

from vnuma.errors import MeasurementFailed, SqlUnreachable, undo_at_end


def fails() -> None:
    """Undo, and fail."""
    raise SqlUnreachable("sql16 does not answer.", fix="Is the guest up?")


def test_the_first_error_is_raised_with_the_second_in_its_words() -> None:
    """The attempt keeps the first one's reason; both sentences and both next steps are shown."""
    with pytest.raises(MeasurementFailed) as caught, undo_at_end(fails):
        raise MeasurementFailed("No timing.", fix="Run it again.")

    said = str(pickle.loads(pickle.dumps(caught.value)))
    assert said.index("No timing.") < said.index("sql16 does not answer.")
    assert "Run it again." in said
    assert "Is the guest up?" in said


def test_an_interruption_stays_one() -> None:
    """Ctrl-C is not an error of ours: the failure to undo is noted on it."""
    with pytest.raises(KeyboardInterrupt) as caught, undo_at_end(fails):
        raise KeyboardInterrupt
    assert "sql16 does not answer." in caught.value.__notes__[0]


def test_after_work_that_went_well_a_failure_to_undo_is_the_error() -> None:
    """Nothing else happened."""
    with pytest.raises(SqlUnreachable, match="sql16"), undo_at_end(fails):
        pass


def test_it_is_undone_once_however_the_work_ended() -> None:
    """Well or not."""
    done: list[str] = []
    with undo_at_end(lambda: done.append("well")):
        pass
    with pytest.raises(MeasurementFailed), undo_at_end(lambda: done.append("not")):
        raise MeasurementFailed("No timing.")
    assert done == ["well", "not"]
