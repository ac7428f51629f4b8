"""Every published sample is read as what it is, and nothing that is not there is made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.logs.published import every_text, samples
from vnuma.logs.kinds import read_any
from vnuma.logs.vmware import read_vmware_log

TOOLS = [*samples("host_tools.yml"), *samples("guest_tools.yml"), *samples("sql_errorlog.yml")]
LOGS = samples("vmware_log.yml")


def plain(value: object) -> Any:
    """As JSON has it: tuples are lists."""
    return json.loads(json.dumps(value, default=str))


def contains(got: Any, expected: Any) -> bool:
    """Whether every expected figure is there; rows of a table may be more than expected."""
    if isinstance(expected, dict):
        return isinstance(got, dict) and all(contains(got.get(key), item) for key, item in expected.items())
    if isinstance(expected, list) and expected and isinstance(expected[0], dict):
        return all(any(contains(row, item) for row in got) for item in expected)
    return bool(got == expected)


@pytest.mark.parametrize("sample", TOOLS, ids=[sample["id"] for sample in TOOLS])
def test_output_of_tools_is_recognised_and_read(sample: dict[str, Any]) -> None:
    """The text is recognised as its kind and nothing else, with its figures."""
    readings = read_any(sample["text"])

    assert [reading.kind for reading in readings] == [sample["kind"]]
    figures = plain(readings[0].figures)
    assert contains(figures, sample["expect"]), figures


@pytest.mark.parametrize("sample", LOGS, ids=[sample["id"] for sample in LOGS])
def test_logs_of_vms_are_read(sample: dict[str, Any]) -> None:
    """Old and new lines, with and without prefixes, of ESXi and of hosted products."""
    log = read_vmware_log(sample["text"])

    got = plain({name: getattr(log, name) for name in sample["expect"] if name != "cookie"})
    assert got == {name: value for name, value in sample["expect"].items() if name != "cookie"}
    assert log.doubts == ()
    for reading in read_any(sample["text"]):
        assert contains(plain(reading.figures).get("cookie"), sample["expect"].get("cookie", {}) or None) or (
            "cookie" not in sample["expect"]
        )


@pytest.mark.parametrize("sample", samples("formats.yml"), ids=lambda sample: str(sample["id"]))
def test_a_format_is_no_reading_until_it_is_filled_in(sample: dict[str, Any]) -> None:
    """A page that quotes the message's format is not a log; a message of that format is."""
    assert not read_any(sample["text"])

    text = sample["text"]
    for placeholder, figure in sample["filled"]:
        text = text.replace(placeholder, figure)
    (reading,) = read_any(text)

    assert reading.kind == sample["kind"]
    assert contains(plain(reading.figures), sample["expect"])


@given(st.lists(st.sampled_from(every_text()) | st.text(max_size=80), max_size=4), st.data())
def test_no_text_makes_a_parser_fail(parts: list[str], data: st.DataObject) -> None:
    """Samples glued together, cut anywhere, with anything between."""
    text = "".join(parts)
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))

    for reading in read_any(text[start:end]):
        assert reading.figures


@given(st.text(st.sampled_from("numaHost: VCPUDs 0123456789\n=\"DICT()|,.-*%'NHNGIDAME_"), max_size=400))
def test_no_scrap_of_the_vocabulary_makes_a_parser_fail(text: str) -> None:
    """Text made of the very words and signs that the parsers look for."""
    read_any(text)


def test_figures_too_long_to_be_true_are_left_out() -> None:
    """A number of thousands of digits is not a number of CPUs."""
    digits = "9" * 5000
    text = (
        f'numaHost: {digits} VCPUs 2 VPDs 2 PPDs\nDICT numvcpus = "{digits}"\nCPU(s): {digits}\n'
        f"SQL Server detected {digits} sockets with 4 cores per socket\n"
    )

    assert read_vmware_log(text).vcpus is None
    assert all("cpus" not in reading.figures for reading in read_any(text))
