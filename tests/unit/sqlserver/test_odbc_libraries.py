"""unixODBC unpacked into the Python environment is the one that pyodbc gets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vnuma.sqlserver.client import odbc

LOADED = "print({line.split()[-1] for line in open('/proc/self/maps') if 'libodbc.so' in line})"


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """This machine's unixODBC as its packages would lie in an environment, with one that does not load."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    loaded = {Path(line.split()[-1]) for line in maps if "libodbc" in line or "libltdl" in line}
    places = {path.parent for path in loaded if path.name.startswith("libodbc.so")}
    assert places, "this test copies libodbc.so.2, which is not loaded here"
    folder = tmp_path / "odbc" / "usr" / "lib" / "some-linux-gnu"
    folder.mkdir(parents=True)
    for path in loaded:
        if path.parent not in places:  # Microsoft's driver brings a libodbcinst of its own
            continue
        copy = Path(shutil.copy(path, folder))
        name, version = path.name.split(".so.")
        (folder / f"{name}.so.{version.split('.')[0]}").symlink_to(copy.name)
    (folder / "libaside.so.1").write_bytes(b"cut")
    return tmp_path


def test_the_environment_s_own_library_is_loaded(unpacked: Path) -> None:
    """Importing the product's module loads libodbc from the environment; a broken one is left out."""
    code = f"import sys; sys.prefix = {str(unpacked)!r}; import vnuma.sqlserver.client.odbc; {LOADED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert f"'{unpacked}/odbc/usr/lib/some-linux-gnu/libodbc.so" in done.stdout


def test_a_caller_on_this_machine_gets_it_too(unpacked: Path) -> None:
    """Callers import pyodbc without vnuma: their environment names the library's folder."""
    environment = odbc.environment(unpacked / "odbc")
    command = [sys.executable, "-c", f"import pyodbc; {LOADED}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert f"'{unpacked}/odbc/usr/lib/some-linux-gnu/libodbc.so" in done.stdout


def test_without_an_unpacked_library_nothing_is_set(tmp_path: Path) -> None:
    """A machine with unixODBC of its own keeps its linker's settings."""
    assert odbc.environment(tmp_path) == dict(os.environ)
