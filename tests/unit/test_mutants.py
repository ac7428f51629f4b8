"""The faults of `make mutants` still apply to the product as it is."""

from __future__ import annotations

from pathlib import Path

from tools import mutants


def test_every_fault_is_in_one_place_and_has_tests() -> None:
    """A change that moves one changes its pattern, too."""
    texts = "\0".join(path.read_text(encoding="utf-8") for path in mutants.sources(mutants.ROOT))
    faults = mutants.read()

    assert [one.fault for one in faults if texts.count(one.old) != 1] == []
    tests = {Path(mutants.ROOT, test.partition("::")[0]) for one in faults for test in one.tests}
    assert [test for test in tests if not test.exists()] == []
    assert all(one.tests and one.new != one.old for one in faults)
