"""The archive for a site without internet: what it pins, and what its script says where something lacks."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.dist import ROOT, Release
from tools.wheelhouse import SCRIPT, run_time_lock

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_only_what_runs_is_pinned_each_with_its_hashes() -> None:
    """All of pyproject's dependencies for this Python, and none of the tests' tools."""
    lock = run_time_lock(Release(ROOT, "0", 0))
    pins = [Requirement(line.rstrip("\\ ")) for line in lock.splitlines() if "==" in line]
    names = [canonicalize_name(pin.name) for pin in pins]

    assert {"pyvmomi", "pyodbc", "ansible-core", "jinja2", "sqlalchemy", "cffi"} <= set(names)
    assert {"pytest", "mypy", "playwright", "statsmodels"} & set(names) == set()
    assert len(names) == len(set(names))
    assert lock.count("--hash=sha256:") >= len(pins)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An unpacked archive for this Python that holds the script alone."""
    folder = tmp_path / f"vnuma-0.2.0-offline-py{PYTHON.replace('.', '')}-x86_64"
    folder.mkdir()
    shutil.copy(SCRIPT, folder / "install")
    digest = hashlib.sha256((folder / "install").read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{digest}  install\n")
    return folder


def _install(folder: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path or f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    command = ["/bin/sh", str(folder / "install"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("wrong", ["damaged", "Python 3.9 is needed", "./install"])
def test_what_lacks_is_named_before_anything_is_written(archive: Path, tmp_path: Path, wrong: str) -> None:
    """A damaged archive; wheels of another Python; no folder to install to, with an example."""
    if wrong == "damaged":
        (archive / "SHA256SUMS").write_text("0" * 64 + "  install\n")
    if wrong.startswith("Python"):
        archive = archive.rename(archive.with_name("vnuma-0.2.0-offline-py39-x86_64"))
    done = _install(archive, *([] if wrong == "./install" else [str(tmp_path / "vnuma")]))

    assert done.returncode != 0
    assert wrong in done.stderr
    assert not (tmp_path / "vnuma").exists()
