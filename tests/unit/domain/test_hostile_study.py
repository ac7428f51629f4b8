"""Study files that break readers: one sentence with file and line, at once, whatever they hold."""

from __future__ import annotations

import time

import pytest

from tests.report.build import study_text
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError

WELL = study_text(sizes="500", forms="client")

TEXTS = {
    "escape in an arm's name": (r'{topology: 2x8, name: "a\eb"}', "U+001B"),
    "line break in an arm's name": (r'{topology: 2x8, name: "a\nb"}', "U+000A"),
    "direction mark in an arm's name": (r'{topology: 2x8, name: "a\u202Eb"}', "U+202E"),
}


@pytest.mark.parametrize(("arm", "words"), TEXTS.values(), ids=TEXTS)
def test_an_arms_name_is_plain_text(arm: str, words: str) -> None:
    """What cannot be printed or drawn is refused where it enters, with its line."""
    text = WELL.replace("arms: [1x16, 2x8,", f"arms: [1x16, {arm},")
    with pytest.raises(InputError, match=r"study\.yml:6: ") as caught:
        parse_study(text, "study.yml")
    assert words in caught.value.what


@pytest.mark.parametrize("title", [r'"\ud800"', r'"a\u0007b"'])
def test_a_title_is_plain_text(title: str) -> None:
    """A lone surrogate cannot be written into any page."""
    text = WELL.replace("title: Five topologies of a 16-vCPU SQL Server VM", f"title: {title}")
    with pytest.raises(InputError, match=r"study\.yml:2: "):
        parse_study(text, "study.yml")


@pytest.mark.parametrize("seed", ["100000000000000000000000", "0x" + "f" * 5_000, "9" * 5_000])
def test_a_seed_fits_the_store(seed: str) -> None:
    """The store has 64 bits for it."""
    with pytest.raises(InputError, match=r"study\.yml:"):
        parse_study(WELL.replace("seed: 7", f"seed: {seed}"), "study.yml")


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
    with pytest.raises(InputError, match="1,000,000 arms"):
        parse_study(text, "study.yml")
    assert time.monotonic() - begun < 10
