"""Figures and settings as people read them."""

from __future__ import annotations

import pytest

from vnuma.domain.vm.change import Edit
from vnuma.words.plain_text import signed_seconds


@pytest.mark.parametrize(
    ("seconds", "words"), [(-0.3, "0 s"), (0.3, "0 s"), (2.6, "+3 s"), (-12.0, "-12 s"), (4000.0, "+4,000 s")]
)
def test_a_clock_is_ahead_or_behind_or_right(seconds: float, words: str) -> None:
    """No clock is minus zero seconds ahead."""
    assert signed_seconds(seconds) == words


def test_a_change_from_or_to_nothing_says_so() -> None:
    """Without a None in a sentence."""
    assert str(Edit("numa.vcpu.min", "8", None)) == "numa.vcpu.min: 8 -> not set"
    assert str(Edit("cpuAffinity", (), (0, 2))) == "cpuAffinity: not set -> 0,2"
