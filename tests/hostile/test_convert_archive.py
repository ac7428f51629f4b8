"""Archives with a SQLite file inside: refused by commands, converted with care."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.archives import Files, changed_store, first_form
from tests.support.cli import vnuma_here
from tools.convert_archive import convert
from vnuma.errors import InputError
from vnuma.report.archive.read import open_archive
from vnuma.report.export.results import as_json
from vnuma.report.model.model import load_run
from vnuma.store.open import open_store

pytestmark = pytest.mark.long


@pytest.fixture
def old(archived: tuple[Path, Files], tmp_path: Path) -> Path:
    """Its archive as earlier versions wrote it."""
    path = tmp_path / "old.vnuma.zip"
    path.write_bytes(first_form(archived[0], tmp_path))
    return path


def test_an_old_archive_is_refused_with_the_command_that_converts_it(old: Path) -> None:
    """Exit 3; the SQLite file inside is not opened."""
    ran = vnuma_here("results", old)

    assert ran.code == 3
    assert "python -m tools.convert_archive old.vnuma.zip NEW.vnuma.zip" in " ".join(ran.err.split())


def test_a_converted_archive_has_the_store_s_results(
    archived: tuple[Path, Files], old: Path, tmp_path: Path
) -> None:
    """Byte for byte, with the samples' own values."""
    convert(old, tmp_path / "new.vnuma.zip")

    again = load_run(*open_archive(tmp_path / "new.vnuma.zip"))
    assert as_json(again) == as_json(load_run(open_store(f"sqlite:///{archived[0]}"), "latest"))


ENDLESS = (
    "DROP TABLE fact; CREATE VIEW fact AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
    "SELECT id FROM n"
)
CASES = {
    "a view for a table": (ENDLESS, "fact is not a table"),
    "a virtual table": ("DROP TABLE fact; CREATE VIRTUAL TABLE fact USING fts5(id)", "fact is not a table"),
    "a computed column": ("ALTER TABLE cell ADD COLUMN more AS (hex(zeroblob(9)))", "cell is not a table"),
    "two runs": (
        "INSERT INTO run SELECT id + 1, study_id, name || '1', study_name, number + 1, seed, state, "
        "stop_requested, simulated, product_version, driver_json, inventory, created_at, finished_at, "
        "supervisor_pid, supervisor_host, heartbeat_at, ticket FROM run",
        "2 rows of run",
    ),
    "NaN": ("UPDATE fact SET value_json = 'NaN'", "not a number"),
    "deep JSON": (f"UPDATE fact SET value_json = '{'[' * 20_000}'", "nested deeper"),
    "a bad time": ("UPDATE run SET created_at = 'yesterday'", "run.created_at"),
    "text as a number": ("UPDATE attempt SET token = 'many'", "attempt.token"),
    "bytes as a name": ("UPDATE vm SET name = x'ff00'", "vm.name"),
    "an escape as a name": ("UPDATE vm SET path = char(27)", "vm.path"),
    "an endless figure": ("UPDATE sample SET elapsed_ms = 9e999", "sample.elapsed_ms"),
    "a huge value": ("UPDATE attempt SET detail = printf('%.*c', 20000000, 'x') WHERE id = 1", "too big"),
    "a cell of no VM": ("UPDATE cell SET vm_id = 99", "FOREIGN KEY"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_store_that_vnuma_did_not_write_is_not_converted(
    archived: tuple[Path, Files], tmp_path: Path, case: str
) -> None:
    """Nothing in it runs, and each odd value is refused by its column; no file is written."""
    statements, words = CASES[case]
    changed = tmp_path / "odd.db"
    changed.write_bytes(changed_store(archived[0].read_bytes(), tmp_path, statements))
    old = tmp_path / "old.vnuma.zip"
    old.write_bytes(first_form(changed, tmp_path))

    with pytest.raises(InputError) as caught:
        convert(old, tmp_path / "new.vnuma.zip")

    assert words in caught.value.what
    assert not (tmp_path / "new.vnuma.zip").exists()
