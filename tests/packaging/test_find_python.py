"""The Python for a checkout: new enough, able to make virtual environments, and kept once chosen."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.installation import ROOT


def python(path: Path, *, old: bool = False, whole: bool = True, speaks: bool = False) -> None:
    """A program that answers the questions as a Python of that kind would; `speaks`: 3.7 to 3.10."""
    path.parent.mkdir(parents=True, exist_ok=True)
    answers = f"*'(3, 7)'*) exit {int(not speaks)} ;; "
    answers += f"*version_info*) exit {int(old)} ;; *ensurepip*) exit {int(not whole)} ;;"
    path.write_text(f'#!/bin/sh\ncase "$2" in {answers} esac\n')
    path.chmod(0o755)


def find_python(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the search in a folder that is not a checkout, with only the Pythons in `folder`."""
    return subprocess.run(
        ["/bin/sh", str(ROOT / "tools" / "find-python")],
        cwd=folder,
        env={"PATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_newest_that_can_make_environments_is_taken(tmp_path: Path) -> None:
    """A newer Python without ensurepip (Debian without python3-venv) gives way to an older whole one."""
    python(tmp_path / "python3.13", whole=False)
    python(tmp_path / "python3.12")
    python(tmp_path / "python3.11")

    assert find_python(tmp_path).stdout == "python3.12\n"


def test_one_without_ensurepip_is_better_than_none(tmp_path: Path) -> None:
    """The set-up has other ways to get pip: a cut-down Python is still taken."""
    python(tmp_path / "python3", whole=False)

    assert find_python(tmp_path).stdout == "python3\n"


def test_the_environment_s_own_python_is_kept(tmp_path: Path) -> None:
    """A checkout with a virtual environment keeps its Python, however pip got into it."""
    python(tmp_path / ".venv" / "bin" / "python", whole=False)
    python(tmp_path / "python3.13")

    assert find_python(tmp_path).stdout == ".venv/bin/python\n"


@pytest.mark.parametrize("named", ["python3.10", "python9"])
def test_a_named_python_that_does_not_fit_is_refused(tmp_path: Path, named: str) -> None:
    """PYTHON is the user's word: it is used or refused, never replaced."""
    python(tmp_path / "python3.10", old=True)
    python(tmp_path / "python3.12")
    done = find_python(tmp_path, PYTHON=named)

    assert (done.returncode, done.stdout) == (4, "")
    assert f"PYTHON={named}" in done.stderr


def test_no_python_is_reported_with_the_way_out(tmp_path: Path) -> None:
    """Only an old Python: one sentence says what is needed, another how to get it."""
    python(tmp_path / "python3", old=True)
    done = find_python(tmp_path)

    assert done.returncode == 4
    assert "apt-get install" in done.stderr


def test_an_old_python_is_taken_to_say_what_is_missing(tmp_path: Path) -> None:
    """Set-up runs on it, and tells all obstacles at once: the Python is one of them."""
    python(tmp_path / "python3", old=True, speaks=True)

    assert find_python(tmp_path).stdout == "python3\n"
