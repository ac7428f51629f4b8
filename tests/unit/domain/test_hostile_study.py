"""Study files that break readers: one sentence with file and line, at once, whatever they hold."""

from __future__ import annotations

import time

import pytest

from tests.report.build import study_text
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError

WELL = study_text(sizes="500", forms="client")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("arms: [1x16,", r'arms: [1x16, {topology: 2x8, name: "a\eb"},', 6),
        ("arms: [1x16,", r'arms: [1x16, {topology: 2x8, name: "a\nb"},', 6),
        ("arms: [1x16,", r'arms: [1x16, {topology: 2x8, name: "a\u202Eb"},', 6),
        ("title: Five", r'title: "\ud800" #', 2),
        ("title: Five", r'title: "a\u0007b" #', 2),
        ("seed: 7", "seed: 100000000000000000000000", 1),
        ("seed: 7", f"seed: 0x{'f' * 5_000}", 1),
        ("seed: 7", f"seed: {'9' * 5_000}", 8),
    ],
)
def test_names_are_plain_text_and_numbers_fit_the_store(old: str, new: str, line: int) -> None:
    """What cannot be printed, drawn or stored is refused where it enters, with its line."""
    with pytest.raises(InputError) as caught:
        parse_study(WELL.replace(old, new), "study.yml")

    assert caught.value.what.startswith(f"study.yml:{line}: ")


def test_a_huge_crossing_is_counted_and_not_made() -> None:
    """Nine factors with ten values each would be a billion arms."""
    ten = ", ".join(map(str, range(1, 11)))
    names = (
        "memory_mb",
        "numa_vcpu_min",
        "cores_per_numa_node",
        "max_per_virtual_node",
        "maxdop",
        "vnuma_nodes",
    )
    arms = "".join(f"  {name}: [{ten}]\n" for name in names)
    text = WELL.replace("arms: [1x16, 2x8, 4x4, 8x2, 16x1]", f"arms:\n  topologies: all\n{arms}")
    begun = time.monotonic()
    with pytest.raises(InputError):
        parse_study(text, "study.yml")
    assert time.monotonic() - begun < 10
