"""The container image and the execution environment, built on a bare Debian and run without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.images import BASE, Container, Images, made_context, made_images

pytestmark = pytest.mark.long
STORE = "/var/lib/vnuma"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Images with a base."""
    return made_images(tmp_path_factory)


@pytest.fixture(scope="module")
def context(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build reads, where one is possible."""
    return made_context(tmp_path_factory)


@pytest.fixture(scope="module")
def container(images: Images, context: Path) -> Iterator[Container]:
    """The image of the Containerfile."""
    images.build("localhost/vnuma", context, "Containerfile", f"BASE={BASE}")
    with images.container("localhost/vnuma", STORE) as running:
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


def test_the_demo_runs_in_the_execution_environment(execution_environment: Container) -> None:
    """As AWX starts it: by its entry point, as a user without root, with /runner to write into."""
    done = execution_environment.run("vnuma", "demo")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "36 of 36 cells valid" in done.stderr


def test_the_execution_environment_has_the_collection_and_the_runner(
    execution_environment: Container,
) -> None:
    """Ansible finds the roles without a configuration; AWX finds ansible-runner."""
    listed = execution_environment.run("ansible-doc", "-t", "role", "-l", "vnuma.vnuma")
    runner = execution_environment.run("ansible-runner", "--version")

    assert "vnuma.vnuma.cell" in listed.stdout, listed.stderr
    assert runner.returncode == 0, runner.stderr
