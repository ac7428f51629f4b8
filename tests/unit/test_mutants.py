"""The faults of `make mutants` still apply to the product as it is."""

from __future__ import annotations

from pathlib import Path

from tools import mutants


def test_every_fault_is_in_one_place_and_has_tests() -> None:
    """A change that moves one changes its pattern, too."""
    texts = "\0".join(path.read_text(encoding="utf-8") for path in mutants.sources(mutants.ROOT))
    faults = mutants.read()

    assert [one.fault for one in faults if texts.count(one.old) != 1] == []
    assert [test for test in {test for one in faults for test in one.tests} if not _exists(test)] == []
    assert all(one.tests and one.new != one.old for one in faults)


def _exists(test: str) -> bool:
    file, _, function = test.partition("::")
    path = Path(mutants.ROOT, file)
    return path.exists() and (not function or f"def {function}(" in path.read_text(encoding="utf-8"))
