"""Try the product on the other Pythons of this machine: locked packages, unit tests of the core, one study.

    python tools/smoke.py                    every other supported Python that is found
    python tools/smoke.py /path/python3.13   these

Each gets a virtual environment in a temporary folder. Standard library only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
NEWEST = (3, 14)
TESTS = ("tests/unit/domain", "tests/unit/workloads", "tests/e2e/test_run.py")
LOCKS = ("requirements.lock", "tools/build.lock", "tools/dev.lock")
ASK = "import ensurepip, sys; print(*sys.version_info[:2])"


def main() -> int:
    """Run the tests on each; 1 if they fail on one. None found is said, and no failure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="*", type=Path, metavar="PYTHON")
    parser.add_argument("--newest", action="store_true", help="only the newest that is found")
    options = parser.parse_args()
    found = dict(versions(options.pythons or candidates()))
    found.pop(sys.version_info[:2], None)
    chosen = sorted(found, reverse=True)[: 1 if options.newest else None]
    if not chosen:
        print("smoke: no other supported Python on this machine")
    return 1 if [version for version in chosen if not works(version, found[version])] else 0


def candidates() -> Iterator[Path]:
    """Programs that may be other Pythons: on PATH, and pyenv's."""
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        program = shutil.which(f"python3.{minor}")
        if program:
            yield Path(program)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob("versions/3.1*/bin/python"))


def versions(programs: Iterator[Path] | list[Path]) -> Iterator[tuple[tuple[int, int], Path]]:
    """Those that are supported and can make virtual environments, by version."""
    for program in programs:
        asked = subprocess.run([program, "-c", ASK], capture_output=True, text=True, check=False)
        numbers = asked.stdout.split()
        if asked.returncode == 0 and OLDEST <= (int(numbers[0]), int(numbers[1])) <= NEWEST:
            yield (int(numbers[0]), int(numbers[1])), program


def works(version: tuple[int, int], program: Path) -> bool:
    """Install the locked packages and the checkout, and run the tests."""
    began = time.monotonic()
    name = ".".join(map(str, version))
    with tempfile.TemporaryDirectory(prefix="vnuma-smoke-") as folder:
        python = Path(folder) / "bin" / "python"
        install = (python, "-m", "pip", "install", "-q")
        locks = [word for lock in LOCKS for word in ("-r", ROOT / lock)]
        steps: tuple[tuple[str | Path, ...], ...] = (
            (program, "-m", "venv", folder),
            (*install, "--no-deps", "--require-hashes", *locks),
            (*install, "--no-deps", "--no-build-isolation", "-e", ROOT),
            (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS),
        )
        environment = os.environ | {
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        for step in steps:
            if subprocess.run(step, cwd=ROOT, env=environment, check=False).returncode:
                print(f"smoke: Python {name} FAILED at: {' '.join(map(str, step))}")
                return False
    print(f"smoke: Python {name} works ({time.monotonic() - began:.0f} s)")
    return True


if __name__ == "__main__":
    sys.exit(main())
