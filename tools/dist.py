"""Build everything that is given away into dist/: `make dist`.

The source distribution, a wheel for any platform, wheels with the lab's program for Linux on x86_64 and
aarch64, the collection as Ansible Galaxy takes it, a CycloneDX bill of materials, and SHA256SUMS. Only
files that git tracks get in. Two builds of a commit with the same tools give the same bytes: every time
stamp is the commit's.

    python -m tools.dist
    python -m tools.dist --outdir FOLDER
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from vnuma.errors import EnvironmentProblem
from vnuma.lab.program import PROGRAM, Go, compile_program, find_go

ROOT = Path(__file__).resolve().parent.parent
PLATFORMS = {
    "x86_64": {"GOOS": "linux", "GOARCH": "amd64", "GOAMD64": "v1", "GOFLAGS": ""},
    "aarch64": {"GOOS": "linux", "GOARCH": "arm64", "GOARM64": "v8.0", "GOFLAGS": ""},
}
"""What Go is told for each platform whose wheel carries the lab's program."""

SUPPORTED = [
    {"python_version": python, "python_full_version": f"{python}.0", "extra": "", **system}
    for python in ("3.11", "3.12", "3.13", "3.14")
    for system in (
        {"sys_platform": "linux", "platform_system": "Linux"},
        {"sys_platform": "darwin", "platform_system": "Darwin"},
    )
]
"""Where vnuma runs, as the conditions of requirements see it."""


@dataclass(frozen=True)
class Release:
    """What is built: a copy of the tracked files, their version and the time of their commit."""

    sources: Path
    version: str
    epoch: int

    def run(self, *command: str | Path, **environment: str) -> str:
        """Run a program in the sources; its output. Raises EnvironmentProblem with its last words."""
        inherited = {name: value for name, value in os.environ.items() if name != "VNUMA_WHEEL_LAB"}
        environment = {**inherited, "SOURCE_DATE_EPOCH": str(self.epoch), **environment}
        return output(*command, cwd=self.sources, env=environment)


def output(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What a program prints. Raises EnvironmentProblem with its last words."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise EnvironmentProblem(f"{words[0]} ended with {done.returncode}:\n{last}")
    return done.stdout


def release(folder: Path) -> Release:
    """Copy the tracked files as they stand into `folder`. Raises EnvironmentProblem outside a clone."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EnvironmentProblem(
                f"git {words[0]} failed in {ROOT}: {done.stderr.strip()}",
                fix="Distributions are built in a clone with at least one commit.",
            )
        return done.stdout

    epoch = int(git("log", "-1", "--format=%ct"))
    changed = git("status", "--porcelain", "--untracked-files=no").splitlines()
    if changed:
        print(f"Note: {len(changed)} files differ from the last commit, and are built as they are.")
    for name in git("ls-files", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    return Release(folder, project["project"]["version"], epoch)


# --- Distributions -------------------------------------------------------------------------------


def build_packages(made: Release, target: Path, programs: Iterable[Path]) -> None:
    """The source distribution, the wheel without the lab's program, and one with each program."""
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", target)
    made.run(*build, "--sdist", made.sources)
    made.run(*build, "--wheel", made.sources)
    for program in programs:
        made.run(*build, "--wheel", made.sources, VNUMA_WHEEL_LAB=str(program))


def build_collection(made: Release, target: Path, work: Path) -> None:
    """The collection, as ansible-galaxy builds it, with its entries in order and the commit's time."""
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    made.run(galaxy, "collection", "build", "--output-path", target, ANSIBLE_HOME=str(work))
    path = target / f"vnuma-vnuma-{made.version}.tar.gz"
    with tarfile.open(path) as archive:
        members = {member.name: (member, _content(archive, member)) for member in archive}
    files = json.loads(members["FILES.json"][1])
    files["files"].sort(key=lambda entry: entry["name"])
    listed = json.dumps(files, indent=True).encode()
    manifest = json.loads(members["MANIFEST.json"][1])
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(listed).hexdigest()
    first = {"MANIFEST.json": json.dumps(manifest, indent=True).encode(), "FILES.json": listed}
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=made.epoch) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in [*first, *sorted(members.keys() - first)]:
            member, content = members[name]
            content = first.get(name, content)
            member.size, member.mtime, member.pax_headers = len(content), made.epoch, {}
            archive.addfile(member, io.BytesIO(content))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


# --- Bill of materials ---------------------------------------------------------------------------


def bill_of_materials(made: Release, go: Go, program: Path) -> dict[str, Any]:
    """CycloneDX 1.6: vnuma with the locked packages that it needs to run, and the lab with its modules."""
    found = list(run_time_packages(made))
    packages = {ref: part for ref, part, _ in found}
    needs = {ref: needed for ref, _, needed in found}
    modules = dict(go_modules(made, go, program))
    lab = f"pkg:golang/vnuma.dev/lab@{made.version}"
    itself = f"pkg:pypi/vnuma@{made.version}"
    direct = {canonicalize_name(asked.name) for asked in _asked(made)}
    needs[itself] = [lab, *(ref for ref, part in packages.items() if part["name"] in direct)]
    needs[lab] = list(modules)
    licence = [{"license": {"id": "Apache-2.0"}}]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{itself}#{made.epoch}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(made.epoch, UTC).isoformat().replace("+00:00", "Z"),
            "component": _component("application", itself) | {"licenses": licence},
        },
        "components": [
            _component("application", lab) | {"licenses": licence},
            *packages.values(),
            *modules.values(),
        ],
        "dependencies": [{"ref": ref, "dependsOn": sorted(needs.get(ref, []))} for ref in sorted(needs)],
    }


def _component(kind: str, purl: str) -> dict[str, Any]:
    name, version = purl.split("/", 1)[1].rsplit("@", 1)
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _asked(made: Release) -> list[Requirement]:
    """What pyproject.toml names as needed to run."""
    project = tomllib.loads((made.sources / "pyproject.toml").read_text(encoding="utf-8"))
    return [Requirement(text) for text in project["project"]["dependencies"]]


def run_time_packages(made: Release) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Each locked package that vnuma needs to run: its reference, component, and what it needs itself."""
    locked: dict[str, list[Requirement]] = {}
    for line in (made.sources / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if "==" in line:
            pin = Requirement(line.rstrip("\\ "))
            if applies(pin.marker):
                locked.setdefault(canonicalize_name(pin.name), []).append(pin)
    needs: dict[str, set[str]] = {}
    waiting = _asked(made)
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        required = [one for one in requirements(asked) if canonicalize_name(one.name) in locked]
        needs[name] = {canonicalize_name(one.name) for one in required}
        waiting += [one for one in required if canonicalize_name(one.name) not in needs]

    def refs(name: str) -> list[str]:
        return [f"pkg:pypi/{name}@{next(iter(pin.specifier)).version}" for pin in locked[name]]

    for package in sorted(needs):
        needed = [ref for one in sorted(needs[package]) for ref in refs(one)]
        for pin, ref in zip(locked[package], refs(package), strict=True):
            component = _component("library", ref)
            if pin.marker:
                component["properties"] = [{"name": "vnuma:marker", "value": str(pin.marker)}]
            yield ref, component, needed


def requirements(asked: Requirement) -> list[Requirement]:
    """What an installed package needs itself, with the extras that are asked for."""
    required = map(Requirement, distribution(asked.name).requires or [])
    return [one for one in required if applies(one.marker, asked.extras)]


def applies(marker: Marker | None, extras: Iterable[str] = ()) -> bool:
    """Whether a condition holds anywhere where vnuma runs."""
    places = [place | {"extra": extra} for place in SUPPORTED for extra in ("", *extras)]
    return marker is None or any(marker.evaluate(dict(place)) for place in places)


def go_modules(made: Release, go: Go, program: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is linked into the program, as it says itself: its modules, and Go's own library."""
    said = made.run(go.program, "version", "-m", program)
    for name, version in re.findall(r"^\tdep\t(\S+)\t(\S+)", said, re.MULTILINE):
        ref = f"pkg:golang/{name}@{version}"
        yield ref, _component("library", ref)
    ref = f"pkg:golang/std@{go.version.split()[0].removeprefix('go')}"
    yield ref, _component("library", ref)


# --- All of it -----------------------------------------------------------------------------------


def build_all(outdir: Path, work: Path) -> list[Path]:
    """Build everything in `work`; what is complete then replaces the earlier build in `outdir`."""
    go = find_go()
    if go is None:
        raise EnvironmentProblem("No Go toolchain >= 1.25 was found.", fix="make setup-dev")
    made = release(work / "sources")
    target = work / "dist"
    target.mkdir()
    programs = [
        compile_program(made.sources / "lab", go, work / processor / PROGRAM, platform=platform)
        for processor, platform in PLATFORMS.items()
    ]
    build_packages(made, target, programs)
    build_collection(made, target, work / "ansible")
    bill = json.dumps(bill_of_materials(made, go, programs[0]), indent=1) + "\n"
    (target / f"vnuma-{made.version}.cdx.json").write_text(bill, encoding="utf-8")
    files = sorted(target.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (target / "SHA256SUMS").write_text(sums, encoding="utf-8")
    for old in outdir.glob("vnuma-*"):
        old.unlink()
    shutil.copytree(target, outdir, dirs_exist_ok=True)
    return [outdir / file.name for file in sorted(target.iterdir())]


def main() -> int:
    """Build; 4 and a sentence when that cannot be done."""
    parser = argparse.ArgumentParser(description="Build what is given away.")
    parser.add_argument("--outdir", type=Path, default=ROOT / "dist", help="the folder that they go into")
    chosen = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="vnuma-dist-") as folder:
            built = build_all(chosen.outdir, Path(folder).resolve())
    except EnvironmentProblem as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for file in built:
        print(f"{file.stat().st_size:>12,}  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
