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


OLD, CUT = {"old": True}, {"whole": False}
OWN = ".venv/bin/python"


@pytest.mark.parametrize(
    ("pythons", "taken"),
    [
        pytest.param(
            {"python3.13": CUT, "python3.12": {}, "python3.11": {}},
            "python3.12",
            id="the newest that can make environments: Debian without python3-venv cannot",
        ),
        pytest.param({"python3": CUT}, "python3", id="one without ensurepip is better than none"),
        pytest.param({OWN: CUT, "python3.13": {}}, OWN, id="a checkout keeps its environment's own"),
        pytest.param({"python3": OLD | {"speaks": True}}, "python3", id="an old one says what is missing"),
    ],
)
def test_the_best_python_is_taken(tmp_path: Path, pythons: dict[str, dict[str, bool]], taken: str) -> None:
    """New enough, whole, and the checkout's own first."""
    for name, kind in pythons.items():
        python(tmp_path / name, **kind)

    assert find_python(tmp_path).stdout == f"{taken}\n"


@pytest.mark.parametrize(
    ("environment", "told"),
    [({}, "apt-get install"), *(({"PYTHON": name}, f"PYTHON={name}") for name in ("python3.10", "python9"))],
)
def test_without_a_python_that_fits_the_way_out_is_named(
    tmp_path: Path, environment: dict[str, str], told: str
) -> None:
    """PYTHON is the user's word: it is used or refused, never replaced."""
    python(tmp_path / "python3.10", old=True)
    if environment:
        python(tmp_path / "python3.12")
    done = find_python(tmp_path, **environment)

    assert (done.returncode, done.stdout) == (4, "")
    assert told in done.stderr
