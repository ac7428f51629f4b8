"""`vnuma evidence`: what a text tells, in words or as JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cli import in_json, vnuma_here
from tests.unit.logs.published import samples
from vnuma.domain.topology.evidence import conclusion
from vnuma.logs.kinds import read_any


def text_of(id_: str, file: str) -> str:
    """The text of one published sample."""
    return str(next(sample["text"] for sample in samples(file) if sample["id"] == id_))


def test_a_file_is_explained(tmp_path: Path) -> None:
    """Kind and figures, a line each; two of one kind are numbered."""
    log, two = tmp_path / "vmware.log", tmp_path / "lscpu.txt"
    log.write_text(text_of("vl-65-16v-cps2", "vmware_log.yml"), encoding="utf-8")
    two.write_text("CPU(s): 8\nSocket(s): 2\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-7\n" * 2, encoding="utf-8")

    lines = [vnuma_here("evidence", file).out.splitlines() for file in (log, two)]

    assert (lines[0][0], lines[0].count("  vpd sizes: 8, 8")) == ("vmware.log", 1)
    assert [line for line in lines[1] if line.startswith("lscpu")] == ["lscpu, 1 of 2", "lscpu, 2 of 2"]


def test_scripts_get_json_whatever_the_encoding(tmp_path: Path) -> None:
    """SQL Server writes its error log in UTF-16."""
    log = tmp_path / "ERRORLOG"
    log.write_text(text_of("el-express-2x4", "sql_errorlog.yml"), encoding="utf-16")

    (reading,) = in_json("evidence", log)["readings"]

    assert (reading["sockets"], reading["cores_per_socket"], reading["using"]) == (2, 4, 4)


@pytest.mark.parametrize("options", [(), ("--format", "json")])
@pytest.mark.parametrize("content", [b"nothing \xff of interest", None])
def test_a_text_of_no_known_kind_is_an_error(
    tmp_path: Path, content: bytes | None, options: tuple[str, ...]
) -> None:
    """Or one that is not there. Nothing is made up; the file is named."""
    other = tmp_path / "notes.txt"
    if content:
        other.write_bytes(content)

    shown = vnuma_here("evidence", other, *options)

    assert (shown.code, shown.out, str(other) in shown.err) == (3, "", True)


@pytest.mark.parametrize(
    ("id_", "host", "words"),
    [
        (
            "vl-65-16v-cps2",
            "2x10/128@6.5",
            ["16 vCPUs 2 vNUMA nodes of 8", "Sure", "as found. Its confidence is high"],
        ),
        ("vl-60-10v-cps5", "2x10/128@6.5", ["2 vNUMA nodes of 5", "1 vNUMA node of 10: not as found"]),
        ("vl-60-10v-cps1", "2x10/128@6.0", ["10 vCPUs 1 vNUMA node of 10", "as found"]),
    ],
)
def test_a_log_is_concluded_and_compared_with_the_prediction(
    tmp_path: Path, id_: str, host: str, words: list[str]
) -> None:
    """The first sentence says what was found; then whether it was to be expected, and how sure both are."""
    log = tmp_path / "vmware.log"
    log.write_text(text_of(id_, "vmware_log.yml"), encoding="utf-8")

    shown = " ".join(vnuma_here("evidence", log, "--host-nodes", host).out.split())

    for word in words:
        assert word in shown


def test_a_log_with_a_size_that_is_no_number_is_not_compared(tmp_path: Path) -> None:
    """Nothing is predicted for it, and the reason is shown."""
    log = tmp_path / "vmware.log"
    log.write_text(
        text_of("vl-65-16v-cps2", "vmware_log.yml").replace('numvcpus = "16"', 'numvcpus = "lots"'),
        encoding="utf-8",
    )

    shown = vnuma_here("evidence", log, "--host-nodes", "2x10/128@6.5")

    assert "not compared with a prediction: numvcpus is 'lots'" in " ".join(shown.out.split())


@pytest.mark.parametrize("file", ["vmware_log.yml", "host_tools.yml", "guest_tools.yml", "sql_errorlog.yml"])
def test_every_published_text_has_a_conclusion(file: str) -> None:
    """A sentence each, without a None and without a Python value."""
    for sample in samples(file):
        for reading in read_any(str(sample["text"])):
            words = conclusion(reading)
            assert words.endswith("."), words
            assert not re.search(r"None|\{|\(\)", words), words
