"""Input of strangers: whatever it holds, the command ends soon with one sentence and its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.archives import ARCHIVES, ESCAPE, READ, Files, archived_in, changed_store
from tests.hostile.documents import DESIGNS, EARLIER, EVIDENCE, SNAPSHOT, SNAPSHOTS, TABLES, WAIVERS
from tests.hostile.forked import MOST_BYTES
from tests.hostile.studies import STUDIES, VALID

Command = Callable[..., dict[str, Any]]

_CHECK = ("check", "--snapshot", str(SNAPSHOT))


def _as_bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


CASES: dict[str, tuple[tuple[str, ...], bytes]] = {
    f"{kind}: {name}": (command, _as_bytes(content))
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


@pytest.fixture(scope="module")
def command() -> Iterator[Command]:
    """`command(folder, *arguments)`: run vnuma there, within limits."""
    arguments = [sys.executable, "-m", "tests.hostile.forked"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        assert process.stdin
        assert process.stdout

        def run(folder: Path, *arguments: str) -> dict[str, Any]:
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps({"arguments": arguments, "folder": str(folder)}) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        yield run
        process.stdin.close()


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Files]:
    """A store with a run, and those files of the run's archive that an import reads."""
    return archived_in(tmp_path_factory.mktemp("archived"))


def refused(answer: dict[str, Any], *codes: int) -> None:
    """It ended with such a code, in words, without a traceback, within the limits."""
    assert answer["code"] in codes, answer
    assert "bug in vnuma" not in answer["printed"]
    assert "Traceback" not in answer["printed"]
    assert answer["bytes"] < MOST_BYTES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_file_that_breaks_readers_costs_a_sentence(command: Command, tmp_path: Path, case: str) -> None:
    """Exit 3, or the ordinary answer where the file only looks strange; never a traceback or a hang."""
    arguments, content = CASES[case]
    (tmp_path / "input").write_bytes(content)
    answer = command(tmp_path, *arguments)
    refused(answer, *((0, 3) if case.split(": ", 1)[1] in VALID or case.startswith("evidence") else (3,)))
    assert "\x1b" not in answer["printed"]


@pytest.mark.parametrize("case", DESIGNS)
def test_a_design_that_breaks_readers_costs_a_sentence(command: Command, tmp_path: Path, case: str) -> None:
    """Exit 3, or the ordinary answer where it is only strange."""
    name, content = DESIGNS[case]
    (tmp_path / name).write_bytes(_as_bytes(content))
    answer = command(tmp_path, "check", "--design", name)
    refused(answer, 0, 3)
    assert "\x1b" not in answer["printed"]


@pytest.mark.parametrize("case", ARCHIVES)
def test_a_tampered_archive_costs_a_sentence(
    command: Command, archived: tuple[Path, Files], tmp_path: Path, case: str
) -> None:
    """Exit 3 or 9, whatever was done to the zip, its documents or its store."""
    (tmp_path / "run.zip").write_bytes(ARCHIVES[case](dict(archived[1]), tmp_path))
    answer = command(tmp_path, "import", "run.zip")
    refused(answer, *((0, 3, 9) if case in READ else (3, 9)))
    assert "\x1b" not in answer["printed"]


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
    command: Command, archived: tuple[Path, Files], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """An escape sequence in a VM's name is printed as text, on every screen."""
    statements = (
        f"UPDATE vm SET path = '/DC1/vm/{ESCAPE}', esxi_host = '{ESCAPE}';"
        f"UPDATE attempt SET detail = '{ESCAPE}', step = '{ESCAPE}';"
        f"UPDATE audit SET vm = '{ESCAPE}', who = '{ESCAPE}';"
    )
    (tmp_path / "vnuma.db").write_bytes(changed_store(archived[0].read_bytes(), tmp_path, statements))
    answer = command(tmp_path, *arguments, "--store", f"sqlite:///{tmp_path}/vnuma.db")
    refused(answer, 0)
    assert "\x1b" not in answer["printed"]
    assert "\x07" not in answer["printed"]


@pytest.mark.parametrize(
    ("arguments", "code"), [(("status",), 0), (("results",), 9), (("report",), 9), (("export",), 9)], ids=str
)
def test_a_vm_that_its_study_does_not_name_is_not_reported(
    command: Command, archived: tuple[Path, Files], tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    """Its name is an escape sequence: it is printed as text."""
    statements = f"UPDATE vm SET name = '{ESCAPE}'"
    (tmp_path / "vnuma.db").write_bytes(changed_store(archived[0].read_bytes(), tmp_path, statements))
    answer = command(tmp_path, *arguments, "--store", f"sqlite:///{tmp_path}/vnuma.db")
    refused(answer, code)
    assert "\x1b" not in answer["printed"]
    assert "\\x1b[2J" in answer["printed"]


def test_a_run_whose_row_names_a_missing_one_is_not_exported(
    command: Command, archived: tuple[Path, Files], tmp_path: Path
) -> None:
    """A damaged store is exit 9, with the table that is wrong."""
    statements = "UPDATE fact SET vm_id = 99 WHERE id = (SELECT max(id) FROM fact)"
    (tmp_path / "vnuma.db").write_bytes(changed_store(archived[0].read_bytes(), tmp_path, statements))
    answer = command(tmp_path, "export", "--store", f"sqlite:///{tmp_path}/vnuma.db")
    refused(answer, 9)
    assert "fact names vm 99" in " ".join(answer["printed"].split())
