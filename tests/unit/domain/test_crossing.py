"""Crossed arms: what they make, what they are called, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError

HEAD = "name: a\nvm: sql16\nvcpus: 16\nreference: {}\narms:\n"


def study(arms: str, reference: str = "1x16") -> Study:
    """A study with these crossed arms, indented by two."""
    return parse_study(HEAD.format(reference) + "".join(f"  {line}\n" for line in arms.splitlines()), "a.yml")


def wrong(arms: str, reference: str = "1x16") -> str:
    """The message for a crossing that is wrong."""
    with pytest.raises(InputError) as refused:
        study(arms, reference)
    return str(refused.value)


def test_all_topologies_are_every_pair_of_divisors() -> None:
    """Of 16 there are five; a single value of a factor holds for each and stays out of the names."""
    made = study("topologies: all\nmemory_reservation: locked")

    assert made.labels == ("1x16", "2x8", "4x4", "8x2", "16x1")
    assert {made.arm(label).memory_reservation for label in made.labels} == {"locked"}


def test_factors_multiply_and_name_the_arms() -> None:
    """Each value of each factor with every other, named by what differs."""
    made = study(
        "topologies: [1x16, 2x8]\naffinity: [none, {physical_cores: [0], spare: 1}]\nprefer_ht: [on, auto]",
        "1x16 cpus=none ht=on",
    )

    assert made.labels == (
        "1x16 cpus=none ht=on",
        "1x16 cpus=none ht=auto",
        "1x16 cpus=cores@0+1 ht=on",
        "1x16 cpus=cores@0+1 ht=auto",
        "2x8 cpus=none ht=on",
        "2x8 cpus=none ht=auto",
        "2x8 cpus=cores@0+1 ht=on",
        "2x8 cpus=cores@0+1 ht=auto",
    )
    assert made.arm("2x8 cpus=cores@0+1 ht=auto").prefer_ht == "auto"


@given(
    st.sampled_from([2, 6, 12, 16, 24, 36]), st.lists(st.integers(1, 9), unique=True, min_size=1, max_size=3)
)
def test_a_crossing_has_the_product_of_its_factors_and_no_name_twice(vcpus: int, mins: list[int]) -> None:
    """As many arms as topologies times values; names are stable and differ."""
    text = (
        f"name: a\nvm: v\nvcpus: {vcpus}\nreference: REF\narms: {{topologies: all, numa_vcpu_min: {mins}}}\n"
    )
    with pytest.raises(InputError) as refused:
        parse_study(text, "a.yml")
    first = str(refused.value).partition("Use one of ")[2].partition(",")[0].rstrip(".")
    made = parse_study(text.replace("REF", first), "a.yml")

    divisors = sum(vcpus % n == 0 for n in range(1, vcpus + 1))
    assert len(made.labels) == len(set(made.labels)) == divisors * len(mins)
    assert parse_study(text.replace("REF", first), "a.yml").labels == made.labels


def test_vcpus_may_be_a_factor() -> None:
    """Each number with its own topologies."""
    made = study("topologies: all\nvcpus: [4, 16]")

    assert made.labels == ("1x4", "2x2", "4x1", "1x16", "2x8", "4x4", "8x2", "16x1")
    assert made.arm("2x2").vcpus == 4


def test_a_value_that_is_a_list_is_in_a_list_of_its_own() -> None:
    """So it is one value, not several."""
    made = study("topologies: [1x16]\nnuma_node_affinity: [none, [0, 1]]", "1x16 nodes=none")

    assert made.arm("1x16 nodes=0,1").numa_node_affinity == (0, 1)


@pytest.mark.parametrize(
    ("arms", "line", "said"),
    [
        ("affinity: none", 5, "crossed arms need topologies."),
        ("topologies: all\nprefer_ht: [on, on]", 7, "prefer_ht has on twice."),
        ("topologies: [2x8, 2x8]", 6, "topologies has 2x8 twice."),
        (
            "topologies: all\naffinity: [none, pinned]",
            7,
            "arms.affinity: 'pinned' is not a valid value.",
        ),
        ("topologies: all\nafinity: [none]", 7, "unknown field 'afinity'.\n  Did you mean 'affinity'?"),
        ("topologies: [1x16, 3x5]", 6, "topology 3x5 makes 15 vCPUs, but vcpus is 16."),
        ("topologies: all\naffinity: []", 7, "affinity has no values."),
        (f"topologies: all\nnuma_vcpu_min: {[*range(1, 30)]}", 5, "the factors make 145 arms."),
    ],
)
def test_a_mistake_is_reported_once_with_the_line_of_its_factor(arms: str, line: int, said: str) -> None:
    """Not once for every arm that has it."""
    message = wrong(arms)

    assert f"a.yml:{line}: {said}" in message
    assert message.count(said.partition("\n")[0]) == 1


def test_two_names_for_one_configuration_are_refused() -> None:
    """Written out as well: nobody would read it as the A/A column that it is."""
    text = HEAD.format("1x16") + "  - 1x16\n  - {topology: 1x16, name: same}\n"
    with pytest.raises(InputError):
        parse_study(text, "a.yml")
    assert parse_study(text.replace("topology: 1x16", "topology: 2x8"), "a.yml").labels == ("1x16", "same")


def test_the_published_schema_takes_a_crossing() -> None:
    """Editors that use it do not mark one as wrong."""
    schema = json.loads((Path(__file__).parents[3] / "docs" / "study.schema.json").read_text())
    crossed = schema["properties"]["arms"]["anyOf"][1]

    assert crossed["required"] == ["topologies"]
    assert {"topologies", "affinity", "vcpus", "vnuma_nodes"} <= crossed["properties"].keys()
