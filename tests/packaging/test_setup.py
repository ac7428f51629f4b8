"""Set-up where it cannot work: one sentence with the command that helps, exit code 4, no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.installation import ROOT
from tools.setup import DEV_LOCKS, FIND_BUILT, RUN_LOCKS, locks, number_of_packages, wanted_stamp
from tools.setup_odbc import odbc_step
from tools.setup_shell import SetupFailed
from vnuma import lab as labs

SetUp = Callable[..., subprocess.CompletedProcess[str]]
CLOSED = "http://127.0.0.1:9"
"""Nothing listens there."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What set-up reads of a checkout, in a folder that is open to every user."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("requirements.lock", "pyproject.toml", "hatch_build.py"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture
def set_up(checkout: Path, tmp_path: Path) -> SetUp:
    """Run set-up there, with an index that does not answer and a home of its own."""

    def run(**environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [getattr(sys, "_base_executable", sys.executable), "-m", "tools.setup"],
            cwd=checkout,
            env={
                **{"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
                **{"PIP_INDEX_URL": f"{CLOSED}/simple", "PIP_NO_CACHE_DIR": "1"},
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """It ended with 4 and said these words, without a traceback."""
    said = done.stdout + done.stderr

    assert done.returncode == 4, said
    assert "Traceback" not in said
    assert all(word in done.stderr for word in words), said


@pytest.mark.long
def test_a_half_made_environment_without_a_network(set_up: SetUp, checkout: Path) -> None:
    """A .venv whose Python was removed is created again; the missing network is one sentence."""
    programs = checkout / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to("/nonexistent/python3.11")
    (checkout / ".venv" / "vnuma-setup.json").write_text("{}")

    refused(set_up(), "network", "HTTPS_PROXY")
    assert (programs / "python").exists()


@pytest.mark.long
def test_a_proxy_that_lets_nothing_through_is_named_every_time(set_up: SetUp) -> None:
    """The proxy is what to look at, not the registry behind it. The cut set-up can be run again."""
    through = {"PIP_INDEX_URL": "https://registry.invalid/simple", "HTTPS_PROXY": CLOSED}

    refused(set_up(**through), "proxy", "127.0.0.1:9")
    refused(set_up(**through), "proxy", "127.0.0.1:9")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_what_belongs_to_another_user_is_reported_before_anything_is_written(
    checkout: Path, tmp_path: Path
) -> None:
    """An unwritable checkout, a .venv of another user and a home without write access: all at once."""
    (checkout / ".venv").mkdir()
    above = Path(tempfile.gettempdir()).resolve()
    for folder in (tmp_path, *tmp_path.parents):
        if above in folder.parents:
            folder.chmod(0o755)
    base = shutil.which("python3", path="/usr/bin") or sys.executable
    done = subprocess.run(
        [base, "-m", "tools.setup"],
        cwd=checkout,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        user=65534,
    )

    refused(done, "another user", "cannot be written", f"rm -rf {checkout}/.venv", "chown")
    assert not any((checkout / ".venv").iterdir())
    assert "[1/4]" not in done.stdout


def test_a_python_without_venv_is_reported_for_this_machine(set_up: SetUp, tmp_path: Path) -> None:
    """Debian without python3-venv: one of two modules is missing, and pip with it."""
    for name in ("ensurepip", "pip"):
        (tmp_path / "cut").mkdir(exist_ok=True)
        (tmp_path / "cut" / f"{name}.py").write_text("raise ImportError('cut out')\n")
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "dnf").write_text("#!/bin/sh\n")
    (bare / "dnf").chmod(0o755)

    done = set_up(PATH=str(bare), PYTHONPATH=str(tmp_path / "cut"))

    refused(done, "virtual environments", "dnf install")
    assert "[1/4]" not in done.stdout


def test_a_lab_program_that_does_not_run_is_not_taken_for_built(tmp_path: Path) -> None:
    """A cut file or another processor's program in the cache is removed, so that the next step builds it."""
    go = labs.find_go()
    assert go is not None
    digest = labs.sources_digest(ROOT / "lab")
    program = tmp_path / "vnuma" / "lab" / f"{digest}-{go.version}" / "vnuma-lab"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"\x7fELF cut")
    program.chmod(0o755)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def ask(code: str) -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert ask("from vnuma.lab import find_built; print(find_built())") == str(program)
    assert ask(FIND_BUILT) == ""
    assert not program.exists()


def test_set_up_for_running_keeps_what_development_added() -> None:
    """Running needs half the packages; `make demo` in a developer's checkout takes no tests away."""
    lean, whole = wanted_stamp(dev=False, have={}), wanted_stamp(dev=True, have={})

    assert locks(lean) == RUN_LOCKS
    assert locks(whole) == (*RUN_LOCKS, *DEV_LOCKS)
    assert number_of_packages(*locks(lean)) <= number_of_packages(*locks(whole)) / 1.8
    assert wanted_stamp(dev=False, have=whole) == whole
    assert wanted_stamp(dev=True, have=lean) == whole


def test_a_named_driver_that_does_not_load_is_refused_and_nothing_else_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user's word counts: another driver would not be taken, so that none is fetched."""
    broken = tmp_path / "libtdsodbc.so"
    broken.write_text("not a library")
    monkeypatch.setenv("VNUMA_ODBC_DRIVER", str(broken))

    with pytest.raises(SetupFailed) as told:
        odbc_step(2)

    assert str(broken) in str(told.value)
    assert "unset VNUMA_ODBC_DRIVER && make setup" in str(told.value)
    assert "apt-get" not in capsys.readouterr().out
