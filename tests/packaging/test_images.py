"""The container image and the execution environment, built on a bare Debian and run without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.images import BASE, Container, Images
from tests.support.installation import ROOT
from tools.fresh import NotPossible

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, ("buildah", "mmdebstrap"))),
        reason="images are built by root, with buildah and mmdebstrap",
    ),
]
STORE = "/var/lib/vnuma"
ANSIBLE_BUILDER = "ansible-builder==3.2.0"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Images of this module's own, with a base that a registry would have."""
    made = Images(tmp_path_factory.mktemp("images"))
    try:
        made.make_base()
    except NotPossible as error:
        pytest.skip(str(error))
    return made


@pytest.fixture(scope="module")
def context(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build reads of the checkout after `make dist`."""
    folder = tmp_path_factory.mktemp("context")
    for name in ("Containerfile", ".containerignore", "execution-environment.yml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "odbc.lock", folder / "tools")
    shutil.copytree(built, folder / "dist")
    return folder


@pytest.fixture(scope="module")
def container(images: Images, context: Path) -> Iterator[Container]:
    """The image of the Containerfile."""
    images.build("localhost/vnuma", context, "Containerfile", f"BASE={BASE}")
    with images.container("localhost/vnuma", STORE) as running:
        yield running


@pytest.fixture(scope="module")
def environment(
    images: Images, context: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Container]:
    """The execution environment, as ansible-builder writes its recipe."""
    tools = tmp_path_factory.mktemp("builder")
    venv.create(tools, with_pip=True)
    pip = [str(tools / "bin" / "python"), "-m", "pip", "install", "-q", ANSIBLE_BUILDER]
    subprocess.run(pip, check=True)
    command = [str(tools / "bin" / "ansible-builder"), "create", "--output-filename", "Containerfile"]
    subprocess.run(command, cwd=context, check=True, capture_output=True)
    images.build("localhost/ee", context / "context", "Containerfile", f"EE_BASE_IMAGE={BASE}")
    with images.container("localhost/ee", "/runner") as running:
        yield running


def programs(container: Container, *names: str) -> set[str]:
    """Those of these programs that the image has."""
    script = 'for name in "$@"; do command -v "$name"; done; true'
    done = container.run("sh", "-c", script, "sh", *names, entrypoint=False)
    assert done.returncode == 0, done.stderr
    return {Path(line).name for line in done.stdout.splitlines()}


def test_the_demo_runs_in_the_image_without_root_and_writes_into_its_volume_alone(
    container: Container,
) -> None:
    """Every cell is measured and the report is written; the root is read-only and no network is there."""
    done = container.run("demo")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "36 of 36 cells valid" in done.stderr
    assert list(container.volume.rglob("*.html"))
    assert (container.volume / "vnuma.db").stat().st_uid == 1000


def test_the_image_is_small_and_holds_no_package_tools(container: Container) -> None:
    """Under 700 MB unpacked on a base of 180 MB; neither pip nor a compiler is in it."""
    print(f"image: {container.megabytes()} MB")

    assert container.megabytes() < 700
    assert programs(container, "pip", "gcc", "git", "vnuma") == {"vnuma"}


def test_the_image_has_freetds_and_kerberos(container: Container) -> None:
    """A driver that loads, and the programs that fetch a ticket and open a session."""
    told = container.run("setup")

    assert "FreeTDS" in told.stdout
    assert programs(container, "kinit", "ssh") == {"kinit", "ssh"}


def test_microsofts_driver_comes_in_with_its_licence_accepted(images: Images, context: Path) -> None:
    """The build argument names the licence; without it the driver is not in the image."""
    images.build("localhost/vnuma-ms", context, "Containerfile", f"BASE={BASE}", "ACCEPT_MSODBCSQL_EULA=Y")
    with images.container("localhost/vnuma-ms", STORE) as running:
        told = running.run("setup")

    assert "ODBC Driver 18 for SQL Server" in told.stdout


def test_the_demo_runs_in_the_execution_environment(environment: Container) -> None:
    """As AWX starts it: by its entry point, as a user without root, with /runner to write into."""
    done = environment.run("vnuma", "demo")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "36 of 36 cells valid" in done.stderr


def test_the_execution_environment_has_the_collection_and_the_runner(environment: Container) -> None:
    """Ansible finds the roles without a configuration; AWX finds ansible-runner."""
    listed = environment.run("ansible-doc", "-t", "role", "-l", "vnuma.vnuma")
    runner = environment.run("ansible-runner", "--version")

    assert "vnuma.vnuma.cell" in listed.stdout, listed.stderr
    assert runner.returncode == 0, runner.stderr
