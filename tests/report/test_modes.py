"""What a command writes is nobody else's to read, whatever the shell's umask is; nor do passwords stay."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.build import store_of
from tests.report.conftest import ARCHIVED
from tests.support.cli import vnuma_here
from vnuma.store.open import open_store


@pytest.fixture
def no_umask() -> Iterator[None]:
    """The shell would let everybody read and write."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_nobody_else_may_read_what_a_command_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store, archive, report and crash file, and the folders that are made for them."""
    store_of(_folder(tmp_path / "from") / "vnuma.db", ARCHIVED)
    made = tmp_path / "made"
    monkeypatch.setenv("VNUMA_HOME", str(made / "home"))
    source = ("--store", f"sqlite:///{tmp_path / 'from' / 'vnuma.db'}")
    assert vnuma_here("export", *source, "-o", made / "run.zip").code == 0
    assert vnuma_here("report", *source, "-o", made / "reports" / "run.html").code == 0
    open_store(f"sqlite:///{made / 'home' / 'vnuma.db'}")
    monkeypatch.setattr("vnuma.store.runs.list_runs", None)
    assert vnuma_here("status").code == 1

    written = [path for path in made.rglob("*") if not path.is_symlink()]

    names = {path.name for path in written}
    assert {"run.zip", "run.html", "vnuma.db", "crashes"} <= names
    open_to_others = {str(path) for path in (made, *written) if stat.S_IMODE(path.stat().st_mode) & 0o077}
    assert not open_to_others


@pytest.mark.parametrize("command", ["restore", "status"])
def test_passwords_of_a_killed_run_go_with_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Whichever it is: they are in clear text."""
    home = tmp_path / "home"
    left = _folder(home / "private" / "run-killed")
    (left / "private.json").write_text("secret")
    (home / "private" / "run-killed.lock").touch()
    monkeypatch.setenv("VNUMA_HOME", str(home))

    vnuma_here(command)

    assert not list((home / "private").iterdir())


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path
