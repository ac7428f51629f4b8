"""What ended the work is reported first; a failure to undo it is added, and does not replace it."""

from __future__ import annotations

import pickle

import pytest

from vnuma.errors import MeasurementFailed, SqlUnreachable, undo_at_end


def fails() -> None:
    """Undo, and fail."""
    raise SqlUnreachable("sql16 does not answer.", fix="Is the guest up?")


@pytest.mark.parametrize(
    ("first", "raised"),
    [
        (MeasurementFailed("No timing.", fix="Run it again."), MeasurementFailed),
        (KeyboardInterrupt(), KeyboardInterrupt),  # not an error of ours: the failure is noted on it
        (None, SqlUnreachable),
    ],
)
def test_the_first_error_is_raised_with_the_second_in_its_words(
    first: BaseException | None, raised: type[BaseException]
) -> None:
    """The attempt keeps the first one's reason; both sentences and both next steps are shown."""

    def work() -> None:
        if first:
            raise first

    with pytest.raises(raised) as caught, undo_at_end(fails):
        work()

    error = pickle.loads(pickle.dumps(caught.value))
    said = " ".join([str(error), *getattr(caught.value, "__notes__", [])])
    words = ["No timing.", "Run it again."] if raised is MeasurementFailed else []
    assert [part for part in (*words, "sql16 does not answer.") if part not in said] == []


def test_it_is_undone_once_however_the_work_ended() -> None:
    """Well or not."""
    done: list[str] = []
    with undo_at_end(lambda: done.append("well")):
        pass
    with pytest.raises(MeasurementFailed), undo_at_end(lambda: done.append("not")):
        raise MeasurementFailed("No timing.")
    assert done == ["well", "not"]
