"""Input of strangers: whatever it holds, the command ends soon with one sentence and its exit code."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.archives import ARCHIVES, ESCAPE, READ, Files, changed_store
from tests.hostile.broken import as_bytes
from tests.hostile.documents import DESIGNS, EARLIER, EVIDENCE, SNAPSHOT, SNAPSHOTS, TABLES, WAIVERS
from tests.hostile.studies import STUDIES, VALID
from tests.support.forked import Ended, Program, run_forked

MOST_BYTES = 500_000_000
MOST_SECONDS = 10
_LIMITS = {resource.RLIMIT_DATA: MOST_BYTES, resource.RLIMIT_CPU: MOST_SECONDS}

_CHECK = ("check", "--snapshot", str(SNAPSHOT))


CASES: dict[str, tuple[tuple[str, ...], bytes]] = {
    f"{kind}: {name}": (command, as_bytes(content))
    for kind, command, contents in (
        ("study", ("power", "input"), STUDIES),
        ("snapshot", ("check", "--snapshot", "input"), SNAPSHOTS),
        ("waivers", (*_CHECK, "--waivers", "input"), WAIVERS),
        ("earlier check", (*_CHECK, "--baseline", "input"), EARLIER),
        ("table", ("reanalyse", "input"), TABLES),
        ("evidence", ("evidence", "input"), EVIDENCE),
    )
    for name, content in contents.items()
}


def sampled(cases: Iterable[str]) -> list[Any]:
    """One case in eight; the others are long."""
    return [
        pytest.param(case, marks=pytest.mark.long if number % 8 else ()) for number, case in enumerate(cases)
    ]


Answer = tuple[Ended, str]
"""How a command ended, and what it printed."""


def command(folder: Path, *arguments: str) -> Answer:
    """Run vnuma there; its time is counted on the processor, so that a busy machine fails nothing."""
    env = {**os.environ, "VNUMA_HOME": str(folder / "home")}
    given = Program("vnuma", arguments, env, str(folder), timeout_s=6 * MOST_SECONDS, limits=_LIMITS)
    ended, out, err = run_forked(given)
    return ended, out + err


def refused(answer: Answer, *codes: int) -> str:
    """It ended with such a code, in words without control characters, within the limits; what it printed."""
    ended, printed = answer
    assert ended.code in codes, answer
    assert "bug in vnuma" not in printed
    assert "Traceback" not in printed
    assert not {"\x07", "\x1b"} & set(printed)
    assert ended.bytes < MOST_BYTES
    return printed


@pytest.mark.parametrize("case", sampled(CASES), ids=str)
def test_a_file_that_breaks_readers_costs_a_sentence(tmp_path: Path, case: str) -> None:
    """Exit 3, or the ordinary answer where the file only looks strange; never a traceback or a hang."""
    arguments, content = CASES[case]
    (tmp_path / "input").write_bytes(content)
    refused(
        command(tmp_path, *arguments),
        *((0, 3) if case.split(": ", 1)[1] in VALID or case.startswith("evidence") else (3,)),
    )


@pytest.mark.parametrize("case", sampled(DESIGNS))
def test_a_design_that_breaks_readers_costs_a_sentence(tmp_path: Path, case: str) -> None:
    """Exit 3, or the ordinary answer where it is only strange."""
    name, content = DESIGNS[case]
    (tmp_path / name).write_bytes(as_bytes(content))
    refused(command(tmp_path, "check", "--design", name), 0, 3)


@pytest.mark.parametrize("case", sampled(ARCHIVES))
def test_a_tampered_archive_costs_a_sentence(archived: tuple[Path, Files], tmp_path: Path, case: str) -> None:
    """Exit 3, whatever was done to the zip, its documents or its samples; nothing is unpacked."""
    (tmp_path / "run.vnuma.zip").write_bytes(ARCHIVES[case](dict(archived[1]), tmp_path))
    refused(command(tmp_path, "results", "run.vnuma.zip"), *((0, 3) if case in READ else (3,)))
    assert not list(tmp_path.parent.glob("**/out.txt"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("results",),
        ("results", "--format", "csv"),
        ("results", "--format", "csv", "--table", "samples"),
        ("status",),
        ("status", "quick.1"),
        ("report",),
        ("audit",),
    ],
    ids=" ".join,
)
def test_no_name_in_a_store_reaches_the_terminal_as_it_is(
    archived: tuple[Path, Files], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """An escape sequence in a VM's name is printed as text, on every screen."""
    statements = (
        f"UPDATE vm SET path = '/DC1/vm/{ESCAPE}', esxi_host = '{ESCAPE}';"
        f"UPDATE attempt SET detail = '{ESCAPE}', step = '{ESCAPE}';"
        f"UPDATE audit SET vm = '{ESCAPE}', who = '{ESCAPE}';"
    )
    (tmp_path / "vnuma.db").write_bytes(changed_store(archived[0].read_bytes(), tmp_path, statements))
    refused(command(tmp_path, *arguments, "--store", f"sqlite:///{tmp_path}/vnuma.db"), 0)


@pytest.mark.parametrize(
    ("arguments", "code"), [(("status",), 0), (("results",), 9), (("report",), 9), (("export",), 9)], ids=str
)
def test_a_vm_that_its_study_does_not_name_is_not_reported(
    archived: tuple[Path, Files], tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    """Its name is an escape sequence: it is printed as text."""
    statements = f"UPDATE vm SET name = '{ESCAPE}'"
    (tmp_path / "vnuma.db").write_bytes(changed_store(archived[0].read_bytes(), tmp_path, statements))
    printed = refused(command(tmp_path, *arguments, "--store", f"sqlite:///{tmp_path}/vnuma.db"), code)
    assert "\\x1b[2J" in printed


def test_a_run_whose_row_names_a_missing_one_is_not_exported(
    archived: tuple[Path, Files], tmp_path: Path
) -> None:
    """A damaged store is exit 9, with the table that is wrong."""
    statements = "UPDATE fact SET vm_id = 99 WHERE id = (SELECT max(id) FROM fact)"
    (tmp_path / "vnuma.db").write_bytes(changed_store(archived[0].read_bytes(), tmp_path, statements))
    refused(command(tmp_path, "export", "--store", f"sqlite:///{tmp_path}/vnuma.db"), 9)
