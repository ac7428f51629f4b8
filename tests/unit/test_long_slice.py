"""Which long tests a commit's slice has."""

from __future__ import annotations

from tests.support.long_slice import SIZE, chosen

LONG = [f"tests/e2e/test_{number}.py::test_it" for number in range(120)]


def test_a_seed_always_chooses_the_same_tests() -> None:
    """A failure in CI is repeated by its commit, in whatever order tests were collected."""
    assert chosen("b5a378f", LONG) == chosen("b5a378f", reversed(LONG))
    assert len(chosen("b5a378f", LONG)) == SIZE


def test_commits_choose_different_tests() -> None:
    """Within 120 commits nearly every long test has had its turn."""
    seen = frozenset[str]().union(*(chosen(str(commit), LONG) for commit in range(120)))

    assert len(seen) > 0.9 * len(LONG)


def test_a_new_test_leaves_the_others_where_they_were() -> None:
    """It takes the place of one at most."""
    before, after = chosen("b5a378f", LONG), chosen("b5a378f", [*LONG, "tests/e2e/test_new.py::test_it"])

    assert len(before - after) <= 1
