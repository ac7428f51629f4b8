"""A wheel built from this checkout, and a virtual environment that has it and nothing of the checkout."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from functools import partial
from pathlib import Path

import pytest

from tests.support.installation import ROOT, Installation, dist
from tests.support.made_once import made_once
from vnuma.sqlserver.client.odbc import FOLDER


def build(what: str, folder: Path) -> None:
    """Build one distribution of the checkout into `folder` with the locked hatchling."""
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        f"--{what}",
        "--outdir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    (path,) = made_once(tmp_path_factory, "wheel", partial(build, "wheel")).iterdir()
    return path


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this checkout."""
    (path,) = made_once(tmp_path_factory, "sdist", partial(build, "sdist")).iterdir()
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel in a fresh virtual environment that borrows the locked dependencies.

    A path line in a `.pth` file adds a folder without reading that folder's own `.pth` files: the
    checkout's editable install stays invisible. Where set-up unpacked unixODBC and FreeTDS for the checkout,
    as the machine has none, they are this environment's too.
    """
    folder = made_once(tmp_path_factory, "installed", partial(install, wheel))
    return Installation(
        folder / "venv" / "bin", Path(sys.executable).parent, tmp_path_factory.mktemp("elsewhere")
    )


def install(wheel: Path, folder: Path) -> None:
    """Make `folder`/venv, with the wheel in it."""
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    command = [*pip, "install", "-q", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    if FOLDER.is_dir():
        (folder / "venv" / FOLDER.name).symlink_to(FOLDER)


@pytest.fixture(scope="session")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The checkout's own installation, used from another folder."""
    scripts = Path(sys.executable).parent
    return Installation(scripts, scripts, tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make dist` fills."""
    return made_once(tmp_path_factory, "built", dist)
