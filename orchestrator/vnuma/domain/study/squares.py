"""Square designs: the columns' places in blocks, balanced by construction.

Both are randomised from the seed, since a fixed balanced order would still be somebody's choice.
"""

from __future__ import annotations

from random import Random

Rows = list[list[int]]


def latin_square(columns: int, generator: Random) -> Rows:
    """`columns` blocks in which every column has every place once (Fisher 1926).

    The cyclic square with its rows, places and columns shuffled.
    """
    rows, places, names = (generator.sample(range(columns), columns) for _ in range(3))
    return [[names[(row + place) % columns] for place in places] for row in rows]


def williams_square(columns: int, generator: Random) -> Rows:
    """Blocks in which every column also follows every other equally often (Williams 1949).

    `columns` blocks for an even number, with each ordered pair once in succession; twice as many for an odd
    one, with each pair twice. The zigzag 0, 1, n-1, 2, n-2, ... has every difference once; its shifts make
    the square.
    """
    zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) % columns for place in range(columns)]
    rows = [[(step + shift) % columns for step in zigzag] for shift in range(columns)]
    if columns % 2:
        rows += [row[::-1] for row in rows]
    names = generator.sample(range(columns), columns)
    generator.shuffle(rows)
    return [[names[column] for column in row] for row in rows]


def blocks_of_square(order: str, columns: int) -> int:
    """Number of blocks in one square; 1 if every block is balanced by itself."""
    if order == "latin_square":
        return columns
    if order == "williams":
        return columns * (1 + columns % 2)
    return 1
