"""The order of cells."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.order import columns, plan_cells
from vnuma.domain.study import Study


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
    """The second label stands behind the first, and its arm is the reference."""
    assert columns(study())[1:3] == (("2x8", "2x8"), ("2x8", "2x8 (A/A)"))
    assert len(columns(study(a_a=False))) == 5


def test_fixed_order_is_the_files_order_in_every_block() -> None:
    """Only when asked for by name."""
    cells = plan_cells(study(blocks=2, order="fixed", a_a=False))

    assert [cell.label for cell in cells] == ["1x16", "2x8", "4x4", "8x2", "16x1"] * 2
