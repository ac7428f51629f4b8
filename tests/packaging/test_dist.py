"""What `make dist` builds: which files, what they hold, and that an empty environment needs no more."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.installation import ROOT, Installation, dist
from tests.support.site import SMALL
from vnuma.lab.program import PROGRAM

pytestmark = pytest.mark.long

MACHINES = {"x86_64": 0x3E, "aarch64": 0xB7}
"""ELF's e_machine."""
PT_INTERP = 3
LAB_INVENTORY = "plugin: vnuma.vnuma.lab\n"


@pytest.fixture(scope="module")
def bill(built: Path) -> dict[str, Any]:
    """The bill of materials."""
    (path,) = built.glob("*.cdx.json")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def alone(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel for this machine in an empty environment, with what pip takes from the package index."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder / "venv", with_pip=True)
    (wheel,) = built.glob(f"*_{platform.machine()}.whl")
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "-q", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    home = folder / "empty"
    home.mkdir()
    return Installation(folder / "venv" / "bin", folder / "venv" / "bin", home)


def test_every_file_is_there_with_its_checksum(built: Path) -> None:
    """The source distribution, three wheels, the collection and the bill of materials are in SHA256SUMS."""
    lines = (built / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    listed = {name: checksum for checksum, name in (line.split("  ") for line in lines)}

    assert sorted(re.sub(r"\d+\.\d+\.\d+", "V", name) for name in listed) == [
        "vnuma-V-py3-none-any.whl",
        "vnuma-V-py3-none-manylinux_2_17_aarch64.whl",
        "vnuma-V-py3-none-manylinux_2_17_x86_64.whl",
        "vnuma-V.cdx.json",
        "vnuma-V.tar.gz",
        "vnuma-vnuma-V.tar.gz",
    ]
    assert listed.keys() | {"SHA256SUMS"} == {path.name for path in built.iterdir()}
    for name, checksum in listed.items():
        assert hashlib.sha256((built / name).read_bytes()).hexdigest() == checksum


@pytest.mark.parametrize("processor", MACHINES)
def test_a_platform_s_wheel_holds_a_static_program_for_it(built: Path, processor: str) -> None:
    """The program is for the wheel's processor, executable, and asks for no loader: any Linux runs it."""
    (path,) = built.glob(f"*_{processor}.whl")
    with zipfile.ZipFile(path) as wheel:
        entry = wheel.getinfo(f"vnuma/_data/bin/{PROGRAM}")
        program = io.BytesIO(wheel.read(entry)).getbuffer()
    at, size, count = (int.from_bytes(program[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
    segments = {int.from_bytes(program[at + i * size :][:4], "little") for i in range(count)}

    assert entry.external_attr >> 16 & 0o111 == 0o111
    assert int.from_bytes(program[18:20], "little") == MACHINES[processor]
    assert PT_INTERP not in segments


def test_the_wheel_for_any_platform_holds_no_program(built: Path) -> None:
    """Nothing in it is for one processor; the rest is what the other wheels hold."""
    names = {path.name: set(zipfile.ZipFile(path).namelist()) for path in built.glob("*.whl")}
    (pure,) = (held for name, held in names.items() if name.endswith("-any.whl"))

    assert all(held - pure <= {f"vnuma/_data/bin/{PROGRAM}"} and pure <= held for held in names.values())


def test_the_collection_holds_ansible_content_and_nothing_else(built: Path) -> None:
    """Every tracked file of its folders is in it; tests, tools, inventories and private files are not."""
    (path,) = built.glob("vnuma-vnuma-*.tar.gz")
    with tarfile.open(path) as archive:
        held = {member.name for member in archive if member.isfile()}
    folders = ("docs", "meta", "playbooks", "plugins", "roles")
    texts = ("CHANGELOG.md", "LICENSE", "README.md")
    command = ["git", "ls-files", *folders, *texts]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()

    assert held == {*tracked, "MANIFEST.json", "FILES.json"}


def test_the_source_distribution_holds_tracked_files_alone(built: Path) -> None:
    """An inventory or a study that somebody wrote in the checkout does not leave it."""
    with tarfile.open(next(built.glob("vnuma-[0-9]*.tar.gz"))) as archive:
        held = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    command = ["git", "ls-files"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")

    assert held - set(tracked) == {"PKG-INFO"}


def test_the_bill_names_locked_packages_and_linked_modules(bill: dict[str, Any]) -> None:
    """Each component has the version that the lock, or the lab's go.mod, pins; no test tool is in it."""
    purls = {component["purl"] for component in bill["components"]}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").lower()
    modules = (ROOT / "lab" / "go.mod").read_text(encoding="utf-8")
    for purl in purls:
        kind, name, version = re.fullmatch(r"pkg:(pypi|golang)/(.+)@(.+)", purl).groups()  # type: ignore[union-attr]
        if kind == "pypi":
            assert f"\n{name}=={version}" in f"\n{lock}"
        elif name not in ("std", "vnuma.dev/lab"):
            assert f"\t{name} {version}" in modules

    assert any(purl.startswith("pkg:pypi/pyvmomi@") for purl in purls)
    assert any(purl.startswith("pkg:golang/github.com/vmware/govmomi@") for purl in purls)
    assert not any(purl.startswith("pkg:pypi/pytest@") for purl in purls)


def test_every_reference_of_the_bill_leads_somewhere(bill: dict[str, Any]) -> None:
    """Dependencies refer only to listed components."""
    known = {component["bom-ref"] for component in (*bill["components"], bill["metadata"]["component"])}
    told = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}

    assert told.keys() <= known
    assert {ref for needed in told.values() for ref in needed} <= known


@pytest.mark.long
def test_without_a_program_and_without_go_the_lab_says_what_to_install(installed: Installation) -> None:
    """The wheel for any platform, and a Go that does not work: exit code 4, and what to install."""
    environment = {"HOME": str(installed.home), "GOROOT": "/nonexistent", "PATH": "/usr/bin:/bin"}
    command = [str(installed.bin / "vnuma"), "lab", "up"]
    done = subprocess.run(command, cwd=installed.home, env=environment, capture_output=True, text=True)

    assert done.returncode == 4
    assert "no lab program" in done.stderr


def test_two_builds_give_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """Neither the hour, the folder nor the user's umask leaves a trace."""
    before = os.umask(0o077)
    try:
        again = dist(tmp_path / "again")
    finally:
        os.umask(before)

    assert (again / "SHA256SUMS").read_text() == (built / "SHA256SUMS").read_text()


def test_pip_installs_what_the_bill_names(alone: Installation, bill: dict[str, Any]) -> None:
    """In an empty environment vnuma brings the packages of the bill of materials, no more and no fewer."""
    listed = json.loads(alone.run("python", "-m", "pip", "list", "--format", "json"))
    installed = {re.sub(r"[-_.]+", "-", package["name"]).lower() for package in listed}
    named = {part["name"] for part in bill["components"] if part["purl"].startswith("pkg:pypi/")}

    assert installed - {"pip", "setuptools", "vnuma"} == named


def test_every_verb_has_its_help_there(alone: Installation) -> None:
    """`vnuma --help` and the help of each verb it lists, in an empty folder."""
    verbs = re.findall(r"^  ([a-z]+)  ", alone.run("vnuma", "--help"), re.MULTILINE)

    assert {"run", "lab", "export", "setup"} <= set(verbs)
    for verb in verbs:
        assert f"vnuma {verb}" in alone.run("vnuma", verb, "--help")


def test_every_module_can_be_imported_there(alone: Installation) -> None:
    """It takes the dependencies alone, except for `serve` and `contract`; Alembic loads migrations itself."""
    code = (
        "import importlib, pkgutil, vnuma\n"
        "for found in pkgutil.walk_packages(vnuma.__path__, 'vnuma.'):\n"
        "    apart = ('vnuma.serve.', 'vnuma.contract.')\n"
        "    if not found.name.endswith('__main__') and not found.name.startswith(apart):\n"
        "        importlib.import_module(found.name)\n"
        "        print(found.name)\n"
    )
    modules = set(alone.run("python", "-c", code).split())
    package = ROOT / "orchestrator"
    sources = (path.relative_to(package).with_suffix("") for path in (package / "vnuma").rglob("*.py"))
    names = {".".join(path.parts).removesuffix(".__init__") for path in sources}

    apart = ("__main__", ".migrations.", "vnuma.serve.", "vnuma.contract.")
    assert {name for name in names - modules if not any(part in name for part in apart)} == {"vnuma"}


def test_a_study_runs_on_the_wheel_s_own_lab(alone: Installation) -> None:
    """The lab starts without Go and without a build, a study runs on it, and its archive is written."""
    (alone.home / "small.yml").write_text(json.dumps(SMALL), encoding="utf-8")
    (alone.home / "lab.vnuma.yml").write_text(LAB_INVENTORY, encoding="utf-8")

    assert str(alone.bin.parent) in alone.run("vnuma", "lab", "build")
    alone.run("vnuma", "lab", "up", "--time-scale", "0")
    try:
        alone.run("vnuma", "run", "small.yml", "-i", "lab.vnuma.yml")
        alone.run("vnuma", "export", "small.1")
    finally:
        alone.run("vnuma", "lab", "down", "--yes")

    assert list(alone.home.glob("small.1*.vnuma.zip"))


@pytest.fixture
def without_unixodbc(alone: Installation) -> Iterator[Installation]:
    """The same environment while its pyodbc asks for a libodbc that this machine lacks."""
    (library,) = (alone.bin.parent / "lib").glob("python*/site-packages/pyodbc*.so")
    whole = library.read_bytes()
    library.write_bytes(whole.replace(b"libodbc.so.2", b"libodbc.so.9"))
    yield alone
    library.write_bytes(whole)


@pytest.mark.parametrize(
    "command",
    [("vnuma", "setup"), ("vnuma", "doctor"), ("ansible-playbook", "play.yml")],
    ids=["setup", "doctor", "play"],
)
def test_without_unixodbc_a_sentence_says_what_to_install(
    without_unixodbc: Installation, command: tuple[str, str]
) -> None:
    """A verb ends with exit code 4, a play with Ansible's own; neither shows a traceback."""
    task = {"vnuma.vnuma.sql_benchmark": {"target": {"name": "sql16"}}}
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]
    home, programs = without_unixodbc.home, without_unixodbc.bin
    (home / "play.yml").write_text(json.dumps(play), encoding="utf-8")
    done = subprocess.run(
        [str(programs / command[0]), command[1]],
        cwd=home,
        env={"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr

    assert done.returncode == 4 if command[0] == "vnuma" else done.returncode != 0
    assert "apt install unixodbc" in said
