"""A wheel built from this checkout, and a virtual environment that has it and nothing of the checkout."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.support.installation import ROOT, Installation, dist
from vnuma.sqlserver.client.odbc import FOLDER


def build(what: str, folder: Path) -> Path:
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
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this checkout."""
    return build("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel in a fresh virtual environment that borrows the locked dependencies.

    A path line in a `.pth` file adds a folder without reading that folder's own `.pth` files: the
    checkout's editable install stays invisible. Where set-up unpacked unixODBC and FreeTDS for the checkout,
    as the machine has none, they are this environment's too.
    """
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    if FOLDER.is_dir():
        (folder / "venv" / FOLDER.name).symlink_to(FOLDER)
    home = folder / "elsewhere"
    home.mkdir()
    return Installation(python.parent, Path(sys.executable).parent, home)


@pytest.fixture(scope="session")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The checkout's own installation, used from another folder."""
    scripts = Path(sys.executable).parent
    return Installation(scripts, scripts, tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make dist` fills."""
    return dist(tmp_path_factory.mktemp("built"))
