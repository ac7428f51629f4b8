"""One archive for a site without internet: `make wheelhouse`.

It holds the wheels of the run-time set as the lock pins them, vnuma's wheel with the lab's program, the
collection, Debian's unixODBC and FreeTDS, SHA256SUMS, and a script that installs it all into a folder. It is
for the processor, the Python and, as to ODBC, the Debian release of the machine that it is made on.

    python -m tools.wheelhouse
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from tools.dist import ROOT, Release, build_all, output
from tools.setup_odbc import PACKAGES
from vnuma.errors import EnvironmentProblem

SCRIPT = Path(__file__).with_name("offline-install")
_SYSTEM = re.compile(r"libc6|libgcc-s1|libcrypt1|gcc-\d+-base|debconf|dpkg|.*-perl.*|perl.*")
"""Packages that every Debian has, or that no library needs."""


def run_time_lock(made: Release) -> str:
    """The lines of the lock that this Python and processor need, with their hashes."""
    kept = []
    for entry in re.split(r"\n(?=\S)", (made.sources / "requirements.lock").read_text(encoding="utf-8")):
        marker = Requirement(entry.splitlines()[0].rstrip("\\ ")).marker
        if marker is None or marker.evaluate():
            kept.append(entry.rstrip())
    return "\n".join(kept) + "\n"


def odbc_packages() -> Iterator[str]:
    """unixODBC, FreeTDS and each library that they need, whatever this machine has of them."""
    apt = ("apt-get", "-oDir::State::status=/dev/null", "--simulate", "--no-install-recommends", "install")
    said = output(*apt, *PACKAGES, cwd=ROOT)
    for name in re.findall(r"^Inst (\S+)", said, re.MULTILINE):
        if not _SYSTEM.fullmatch(name):
            yield name


def make(outdir: Path, work: Path) -> Path:
    """The archive in `outdir`. Raises EnvironmentProblem with the last words of what failed."""
    built = build_all(work / "built", work)
    made = Release(work / "sources", _version(built), 0)
    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    folder = work / f"vnuma-{made.version}-offline-{python}-{platform.machine()}"
    wheels, debs = folder / "wheels", folder / "odbc"
    for place in (wheels, debs):
        place.mkdir(parents=True)
    (folder / "requirements.txt").write_text(run_time_lock(made), encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes")
    output(*pip, "--only-binary", ":all:", "--dest", wheels, "-r", folder / "requirements.txt", cwd=ROOT)
    output("apt-get", "download", *odbc_packages(), cwd=debs)
    for file in built:
        if file.name.endswith(f"_{platform.machine()}.whl") or file.name.startswith("vnuma-vnuma-"):
            shutil.copy(file, folder)
    shutil.copy(SCRIPT, folder / "install")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = (
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files
    )
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    archive = outdir / f"{folder.name}.tar"
    outdir.mkdir(exist_ok=True)
    with tarfile.open(archive, "w") as tar:
        tar.add(folder, folder.name)
    return archive


def _version(built: list[Path]) -> str:
    (sources,) = (path for path in built if re.fullmatch(r"vnuma-[\d.]+\.tar\.gz", path.name))
    return sources.name.removeprefix("vnuma-").removesuffix(".tar.gz")


def main() -> int:
    """Make it; 4 and a sentence when that cannot be done."""
    if shutil.which("apt-get") is None:
        print("The archive holds Debian's ODBC packages: make it on Debian or Ubuntu.", file=sys.stderr)
        return 4
    try:
        with tempfile.TemporaryDirectory(prefix="vnuma-wheelhouse-") as folder:
            archive = make(ROOT / "dist", Path(folder).resolve())
    except EnvironmentProblem as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{archive.stat().st_size:>12,}  {archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
