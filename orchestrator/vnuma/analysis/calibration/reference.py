"""An independent implementation's results: 20,000 studies of the same rule, in percent.

Rates at 6, 8 and 12 blocks. A truth that is not listed was not simulated there.
"""

from __future__ import annotations

from dataclasses import dataclass

Triple = tuple[float, float, float]

BLOCKS = (6, 8, 12)


@dataclass(frozen=True)
class Reference:
    """Percent at BLOCKS: errors per comparison and for some arm, and power for 1%."""

    per_comparison: Triple
    family: Triple
    power: Triple | None = None


REFERENCE = {
    "normal": Reference((4.4, 4.5, 4.6), (4.5, 4.4, 4.5), (61, 79, 96)),
    "2% slow iterations": Reference((4.3, 4.3, 4.2), (4.1, 4.2, 4.2), (58, 74, 87)),
    "20% slow boots": Reference((4.4, 4.6, 4.6), (4.2, 4.1, 4.5), (9, 14, 27)),
    "heavy tails": Reference((3.5, 3.4, 3.8), (3.3, 3.0, 3.2), (70, 84, 95)),
    "skewed": Reference((3.8, 4.0, 4.1), (3.4, 3.6, 3.6)),
    "drift 3.6%, random order": Reference((4.7, 4.6, 4.6), (4.6, 4.7, 4.6)),
    "drift 10%, random order": Reference((4.7, 4.5, 4.7), (4.7, 4.3, 4.8)),
    "wandering host": Reference((4.6, 4.7, 4.6), (4.5, 4.5, 4.5)),
    "one arm's SD x 2": Reference((3.3, 3.0, 2.9), (4.1, 3.5, 2.9), (43, 60, 81)),
    "one arm's SD x 3": Reference((2.1, 1.8, 1.7), (2.4, 1.7, 1.5)),
    "reference's SD x 2": Reference((6.4, 5.8, 5.3), (5.7, 5.0, 4.0)),
    "drift 3.6%, fixed order": Reference((16.1, 13.3, 11.1), (20.9, 17.0, 13.6)),
}
