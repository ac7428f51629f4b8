"""Where the files that belong to vnuma are: shipped ones, and the folder for its own state.

A wheel carries templates, studies and the lab's sources in `vnuma/_data`, and playbooks in the
collection beside the package. In a checkout the same folders stand at its root.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path, user_state_path

from vnuma.errors import EnvironmentProblem

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "_data"


def templates() -> Path:
    """Folder of the page templates."""
    return _shipped("templates")


def studies() -> Path:
    """Folder of the studies that come with vnuma."""
    return _shipped("studies")


def lab_sources() -> Path:
    """Folder of the lab's Go module."""
    return _shipped("lab")


def playbook(name: str) -> Path:
    """File of the playbook `name` (`study`, `cell`, ...)."""
    collection = _PACKAGE.parent / "ansible_collections" / "vnuma" / "vnuma"
    base = collection if _DATA.is_dir() else _checkout()
    return _existing(base / "playbooks" / f"{name}.yml")


def home() -> Path:
    """Folder for stores, the running lab and logs: `VNUMA_HOME`, else the user's state folder.

    It is not created here.
    """
    chosen = os.environ.get("VNUMA_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return user_state_path("vnuma")


def cache() -> Path:
    """Folder for what can be made again, such as the built lab. It is not created here."""
    return user_cache_path("vnuma")


def _shipped(name: str) -> Path:
    return _existing((_DATA if _DATA.is_dir() else _checkout()) / name)


def _checkout() -> Path:
    return _PACKAGE.parent.parent


def _existing(path: Path) -> Path:
    if not path.exists():
        raise EnvironmentProblem(
            f"{path} is missing: this installation of vnuma is incomplete.",
            fix="Install it again: pip install --force-reinstall vnuma, or make setup in a checkout.",
        )
    return path
