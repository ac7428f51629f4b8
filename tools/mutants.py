"""Break the product in known ways, one at a time in a copy, and tell which faults no test notices.

`tools/mutants.toml` lists the faults: text that occurs once in the product, what it becomes, and the tests
that should notice. Exit code 1 if more than 5% survive, 2 if a fault no longer applies, or its tests fail
without it.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".toml")
MOST_SURVIVORS = 0.05
LIMIT_S = 600
"""A fault that makes its tests hang is noticed, too."""
HUNG = f"took more than {LIMIT_S} s"

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        *("_hypothesis_pytestplugin", "anyio.pytest_plugin", "hypothesis.core", "hypothesis.strategies"),
        *("hypothesis.internal.conjecture.engine", "numpy", "psycopg", "pydantic", "pytest", "pyVmomi"),
        *("ruamel.yaml", "sqlalchemy", "typer.main", "xdist.plugin", "yaml"),
    ]
)
_TIMES = count(1_000_000_000)


@dataclass(frozen=True)
class Mutant:
    """A fault: `old` becomes `new`."""

    fault: str
    old: str
    new: str
    tests: tuple[str, ...]

    def place(self, root: Path = ROOT) -> Path:
        """The file that it is in, relative to the checkout. Raises LookupError unless `old` occurs once."""
        found = [path for path in sources(root) if self.old in path.read_text(encoding="utf-8")]
        if len(found) != 1 or found[0].read_text(encoding="utf-8").count(self.old) != 1:
            where = ", ".join(str(path.relative_to(root)) for path in found) or "nowhere"
            raise LookupError(f"{self.fault}: {self.old!r} is not in one place, but in: {where}")
        missing = [test for test in self.tests if not (root / test.partition("::")[0]).exists()]
        if missing:
            raise LookupError(f"{self.fault}: there is no {', '.join(missing)}")
        return found[0].relative_to(root)


def read() -> list[Mutant]:
    """All that are listed."""
    rows: list[dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def chosen(mutants: Sequence[Mutant], count: int, seed: str) -> list[Mutant]:
    """So many of them, by the seed."""
    return sorted(mutants, key=lambda one: hashlib.sha256(f"{seed} {one.fault}".encode()).digest())[:count]


def sources(root: Path) -> list[Path]:
    """The files that a fault may be in."""
    return [*(root / "orchestrator" / "vnuma").rglob("*.py"), *(root / "lab" / "internal").rglob("*.go")]


def _copy(target: Path) -> Path:
    """A copy of the checkout's tracked and new files, with their bytecode; what is in neither is left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    for compiled in [*(ROOT / "orchestrator").rglob("__pycache__"), *(ROOT / "tests").rglob("__pycache__")]:
        shutil.copytree(compiled, target / compiled.relative_to(ROOT), dirs_exist_ok=True)
    return target


def _failure(copy: Path, tests: Sequence[str], limit_s: float | None = None) -> str:
    """How the first of these tests fails in the copy; empty if all pass."""
    go = [f"./{test.removeprefix('lab/')}" for test in tests if test.startswith("lab/")]
    python = [test for test in tests if not test.startswith("lab/")]
    said = _python_failure(copy, python, limit_s) if python else ""
    return said or (_go_failure(copy / "lab", go, limit_s) if go else "")


def _go_failure(lab: Path, packages: Sequence[str], limit_s: float | None) -> str:
    go = shutil.which("go") or str(Path(sys.executable).with_name("go"))  # the machine's, else the wheel's
    command = [go, "test", "-count=1", "-trimpath", "-vet=off", *packages]
    try:
        ran = subprocess.run(
            command, cwd=lab, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return HUNG
    return _told(ran.returncode, (ran.stdout + ran.stderr).decode(errors="replace"))


def _python_failure(copy: Path, tests: Sequence[str], limit_s: float | None) -> str:
    with NamedTemporaryFile() as said:
        process = FORKED.Process(target=_run_tests, args=(copy, tests, said.name))
        process.start()
        process.join(limit_s)
        if process.exitcode is None:
            process.kill()
            process.join()
            return HUNG
        return _told(process.exitcode, Path(said.name).read_text(encoding="utf-8", errors="replace"))


def _run_tests(copy: Path, tests: Sequence[str], said: str) -> None:
    """In a process of its own, which has third parties' modules and none of the copy's."""
    os.chdir(copy)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(copy / ".hypothesis")
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (copy / "orchestrator", copy)))
    sys.path[:0] = [str(copy / "orchestrator"), str(copy)]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    printed = os.open(said, os.O_WRONLY)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    options = ["-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not long"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # preloaded modules have no tests
    os._exit(pytest.main([*options, f"--rootdir={copy}", *tests]))


def _told(code: int, said: str) -> str:
    """What was said of a failure. Raises SystemExit where no test failed and the tests did not pass."""
    if code not in (0, 1):
        raise SystemExit(said)
    return said if code else ""


def _write(file: Path, text: str) -> None:
    """Each text has another time, in whole seconds, by which Python knows its bytecode."""
    file.write_text(text, encoding="utf-8")
    os.utime(file, (next(_TIMES),) * 2)


def noticed(mutant: Mutant, copies: SimpleQueue[Path]) -> tuple[str, float]:
    """How its tests fail with the fault, empty if it survives, and after how many seconds.

    The fault is gone from the copy afterwards.
    """
    copy = copies.get()
    file = copy / mutant.place(copy)
    whole = file.read_text(encoding="utf-8")
    began = time.monotonic()
    try:
        _write(file, whole.replace(mutant.old, mutant.new))
        return _failure(copy, mutant.tests, LIMIT_S), time.monotonic() - began
    finally:
        _write(file, whole)
        copies.put(copy)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try them, and print the survivors."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--only", type=int, metavar="N", help="so many of them")
    parser.add_argument("--seed", default="", help="which ones: a commit")
    parser.add_argument("--match", default="", metavar="TEXT", help="those whose description has this text")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    mutants = [one for one in read() if options.match in one.fault]
    if options.only is not None:
        mutants = chosen(mutants, options.only, options.seed)
    with TemporaryDirectory(prefix="vnuma-mutants-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        try:
            for mutant in mutants:
                mutant.place()
        except LookupError as error:
            print(error)
            return 2
        made = [_copy(Path(folder) / str(number)) for number in range(options.jobs)]
        copies: SimpleQueue[Path] = SimpleQueue()
        for copy in made:
            copies.put(copy)
        # Beside `make test`, which runs them all, those of a few faults need no run without the fault.
        tests = sorted({test for one in mutants for test in one.tests if options.only is None})
        parts = [tests[number :: options.jobs] for number in range(options.jobs)]
        failures = list(filter(None, pool.map(_failure, made, filter(None, parts))))
        if failures:
            print(*failures, "Tests of these faults fail without them.", sep="\n")
            return 2
        left = []
        for mutant, (how, seconds) in zip(
            mutants, pool.map(lambda one: noticed(one, copies), mutants), strict=True
        ):
            word = "hangs" if how == HUNG else "noticed" if how else "SURVIVES"
            print(f"{word:<9}{seconds:5.1f} s  {mutant.fault}", flush=True)
            left += [] if how else [mutant]
    print(f"{len(mutants)} faults, {len(left)} survive.")
    return int(len(left) > MOST_SURVIVORS * len(mutants))


if __name__ == "__main__":
    sys.exit(main())
