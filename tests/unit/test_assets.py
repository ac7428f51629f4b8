"""Shipped files and vnuma's own folders are found in every kind of installation."""

from __future__ import annotations

from pathlib import Path

import pytest

from vnuma import assets
from vnuma.errors import EnvironmentProblem


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site-packages folder as the wheel lays it out."""
    for file in ("vnuma/_data/studies/quick.yml", "ansible_collections/vnuma/vnuma/playbooks/study.yml"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(assets, "_DATA", tmp_path / "vnuma" / "_data")
    monkeypatch.setattr(assets, "_COLLECTION", tmp_path / "ansible_collections" / "vnuma" / "vnuma")
    return tmp_path


def test_a_checkout_s_files_are_its_own() -> None:
    """In a checkout an asset is the file in the repository."""
    root = Path(__file__).resolve().parents[2]

    assert assets.asset("studies/quick.yml") == root / "studies" / "quick.yml"


def test_a_wheel_s_files_are_in_the_package_and_in_the_collection(installed: Path) -> None:
    """From a wheel, Ansible content comes from the collection and the rest from the package."""
    collection = installed / "ansible_collections" / "vnuma" / "vnuma"

    assert assets.asset("studies/quick.yml") == installed / "vnuma" / "_data" / "studies" / "quick.yml"
    assert assets.asset("playbooks/study.yml") == collection / "playbooks" / "study.yml"


def test_a_missing_asset_says_how_to_get_it_back(installed: Path) -> None:
    """An incomplete installation is an error of the environment that names the file."""
    with pytest.raises(EnvironmentProblem):
        assets.asset("templates")


def test_home_is_what_the_user_chose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """VNUMA_HOME decides; without it the user's state folder does, never the current one."""
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path / "mine"))
    assert assets.home() == tmp_path / "mine"

    monkeypatch.delenv("VNUMA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert assets.home().is_relative_to(tmp_path)
