"""The order of cells."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.study.order import blocks_of_square, columns, latin_square, plan_cells, williams_square
from vnuma.domain.study.study import Study


def study(blocks: int = 6, seed: int = 1, **design: object) -> Study:
    """Five arms and an A/A check."""
    return Study.model_validate(
        {
            "name": "s",
            "vms": ["a", "b"],
            "vcpus": 16,
            "reference": "2x8",
            "arms": ["1x16", "2x8", "4x4", "8x2", "16x1"],
            "design": {"blocks": blocks, "seed": seed, **design},
        }
    )


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_each_block_holds_every_column_exactly_once(blocks: int, seed: int) -> None:
    """Randomised complete blocks, positions in a row from one."""
    cells = plan_cells(study(blocks, seed))

    assert [cell.position for cell in cells] == list(range(1, 6 * blocks + 1))
    assert set(Counter((cell.block, cell.label) for cell in cells).values()) == {1}
    assert len(cells) == 6 * blocks


def test_the_seed_alone_decides_the_order() -> None:
    """The same seed gives the same order, another one another."""
    assert plan_cells(study(seed=7)) == plan_cells(study(seed=7))
    assert plan_cells(study(seed=7)) != plan_cells(study(seed=8))


def test_each_vm_has_an_order_of_its_own() -> None:
    """Otherwise every arm would meet the same hour on all VMs."""
    assert plan_cells(study(), 0) != plan_cells(study(), 1)


def test_the_reference_runs_twice_under_two_labels_for_the_a_a_check() -> None:
    """The second label follows the first, and its arm is the reference."""
    assert columns(study())[1:3] == (("2x8", "2x8"), ("2x8", "2x8 (A/A)"))
    assert len(columns(study(a_a=False))) == 5


def test_fixed_order_is_the_files_order_in_every_block() -> None:
    """Only when asked for by name."""
    cells = plan_cells(study(blocks=2, order="fixed", a_a=False))

    assert [cell.label for cell in cells] == ["1x16", "2x8", "4x4", "8x2", "16x1"] * 2


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_a_latin_square_puts_every_column_in_every_place_once(width: int, seed: int) -> None:
    """Balance over places: no arm runs early more often than another."""
    square = latin_square(width, Random(seed))

    every = set(range(width))
    assert len(square) == blocks_of_square("latin_square", width)
    assert all(set(row) == every for row in square)
    assert all(set(place) == every for place in zip(*square, strict=True))


@given(st.integers(2, 12), st.integers(0, 10_000))
def test_a_williams_square_balances_places_and_successors(width: int, seed: int) -> None:
    """Every column has every place, and follows every other, equally often: once, or twice if odd."""
    square = williams_square(width, Random(seed))

    times = 1 + width % 2
    assert len(square) == blocks_of_square("williams", width) == width * times
    for place in zip(*square, strict=True):
        assert Counter(place) == dict.fromkeys(range(width), times)
    pairs = Counter(pair for row in square for pair in pairwise(row))
    assert pairs == {(a, b): times for a in range(width) for b in range(width) if a != b}


def test_squares_differ_by_seed_and_follow_one_another() -> None:
    """Two squares in twelve blocks, each balanced, and not the same square twice."""
    cells = plan_cells(study(blocks=12, order="latin_square"))
    rows = [[cell.label for cell in cells if cell.block == block] for block in range(1, 13)]

    for square in (rows[:6], rows[6:]):
        assert all(len(set(place)) == 6 for place in zip(*square, strict=True))
    assert rows[:6] != rows[6:]
    assert cells != plan_cells(study(blocks=12, order="latin_square", seed=2))


def test_precision_plans_as_many_blocks_as_it_may_take() -> None:
    """The rule takes cells away; it never adds any."""
    assert len(plan_cells(study(blocks=8, precision="1%", max_blocks=10))) == 60
