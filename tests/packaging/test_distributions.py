"""What the wheel and the source distribution carry, and that an installed vnuma needs no checkout."""

from __future__ import annotations

import json
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.installation import ROOT, Installation
from tests.support.site import write_inventory, write_study
from vnuma import lab as labs

COLLECTION = "ansible_collections/vnuma/vnuma"
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
ROLES = sorted(path.name for path in (ROOT / "roles").glob("*") if path.is_dir())
PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
ASSETS = sorted(
    {
        name
        for source in (ROOT / "orchestrator" / "vnuma").rglob("*.py")
        for name in re.findall(r"\basset\(\"([^\"]+)\"\)", source.read_text(encoding="utf-8"))
    }
)
"""Every shipped file or folder that the package names."""
pytestmark = pytest.mark.long
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def shipped_files() -> set[str]:
    """Where each of the repository's files that users need has to be in the wheel."""
    places = {
        COLLECTION: ("plugins", "roles", "playbooks", "meta", "galaxy.yml"),
        "vnuma/_data": ("templates", "studies", "inventories", "lab"),
    }
    found = set()
    for place, names in places.items():
        for name in names:
            files = [ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*.*")
            found |= {f"{place}/{file.relative_to(ROOT).as_posix()}" for file in files if file.is_file()}
    return {
        name for name in found if not any(part in name for part in ("_test.go", "/testdata/", "__pycache__"))
    }


def test_the_wheel_carries_all_that_users_need(wheel: Path) -> None:
    """Package, collection, templates, studies and the lab's sources are in the wheel."""
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {
        path.relative_to(ROOT / "orchestrator").as_posix()
        for path in (ROOT / "orchestrator" / "vnuma").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert MODULES
    assert ROLES
    assert PLAYBOOKS
    assert (shipped_files() | package) - names == set()


def test_the_wheel_carries_nothing_else(wheel: Path) -> None:
    """No tests, caches or files of the checkout's own tools are in the wheel."""
    names = zipfile.ZipFile(wheel).namelist()
    strays = [
        name
        for name in names
        if not name.startswith(("vnuma/", f"{COLLECTION}/", f"vnuma-{VERSION}.dist-info/"))
        or any(part in name for part in ("_test.go", "testdata", "__pycache__", ".venv", "conftest"))
    ]

    assert strays == []


def test_a_wheel_can_be_built_from_the_source_distribution(sdist: Path, wheel: Path) -> None:
    """The source distribution holds every file that goes into the wheel, and the build hook."""
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    sources = {
        name.removeprefix(f"{COLLECTION}/").replace("vnuma/_data/", "")
        if name.startswith((COLLECTION, "vnuma/_data/"))
        else f"orchestrator/{name}"
        for name in zipfile.ZipFile(wheel).namelist()
        if ".dist-info/" not in name
    }

    assert sources | {"hatch_build.py", "pyproject.toml", "LICENSE"} <= inside


def test_the_command_answers_with_its_version(installed: Installation) -> None:
    """`vnuma --version` works from any folder, with an empty environment."""
    assert VERSION in installed.run("vnuma", "--version")


def test_a_study_runs_from_the_wheel_in_another_folder(
    installed: Installation, lab: LabFactory, tmp_path: Path
) -> None:
    """Playbooks, roles and plugins are found without a checkout, a configuration or an environment."""
    study = write_study(tmp_path)

    installed.run("vnuma", "run", str(study), "-i", str(write_inventory(tmp_path, lab())))

    (run,) = json.loads(installed.run("vnuma", "status", "--format", "json"))["runs"]
    assert (run["valid"], run["total"]) == (2, 2)
    assert installed.run("vnuma", "results", "small.1").startswith("SIMULATED")
    installed.run("vnuma", "report", "small.1")


@pytest.mark.parametrize("path", ASSETS)
def test_each_file_that_the_code_asks_for_is_shipped(installed: Installation, path: str) -> None:
    """What the package looks up by name is found inside its own environment, not in the checkout."""
    code = f"from vnuma.assets import asset; print(asset({path!r}))"
    found = Path(installed.run("python", "-c", code).strip())

    assert found.is_relative_to(installed.bin.parent)


def test_the_wheel_and_the_checkout_share_one_built_lab(installed: Installation) -> None:
    """The lab's sources in the wheel are the checkout's, so that one build serves both."""
    code = "from vnuma import assets, lab; print(lab.sources_digest(assets.asset('lab')))"

    assert installed.run("python", "-c", code).strip() == labs.sources_digest(ROOT / "lab")


@pytest.mark.parametrize("kind", ["installed", "editable"])
def test_ansible_finds_every_module_and_its_documentation(kind: str, request: pytest.FixtureRequest) -> None:
    """`ansible-doc` knows each module by its full name, without any configuration."""
    installation: Installation = request.getfixturevalue(kind)
    names = [f"vnuma.vnuma.{module}" for module in MODULES]
    documented = json.loads(installation.run("ansible-doc", "-t", "module", "-j", *names))

    assert sorted(documented) == names
    assert all(documented[name]["doc"]["short_description"] for name in names)
    assert all(documented[name]["examples"] for name in names)


def test_ansible_finds_every_role(installed: Installation) -> None:
    """Each role of the wheel's collection is known with its argument specification."""
    listed = json.loads(installed.run("ansible-doc", "-t", "role", "-l", "-j", "vnuma.vnuma"))

    assert sorted(listed) == [f"vnuma.vnuma.{role}" for role in ROLES]


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_each_playbook_runs_by_its_full_name(installed: Installation, playbook: str) -> None:
    """Ansible reads each shipped playbook, and every role and module that it names, by FQCN."""
    installed.run("ansible-playbook", f"vnuma.vnuma.{playbook}", "--syntax-check", "-i", "localhost,")
