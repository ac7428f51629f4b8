"""Locations of shipped files and of vnuma's own folders.

A wheel has templates, studies, inventories and the lab's sources in `vnuma/_data`, and the Ansible content in
the collection next to the package. A checkout has the same folders at its root. A wheel for one platform also
has the lab's program.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path, user_state_path

from vnuma.errors import EnvironmentProblem

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "_data"
_COLLECTION = _PACKAGE.parent / "ansible_collections" / "vnuma" / "vnuma"
_CHECKOUT = _PACKAGE.parent.parent
_IN_COLLECTION = ("playbooks", "plugins", "roles")


def asset(path: str) -> Path:
    """A shipped file or folder, by its place in the repository: `templates`, `playbooks/study.yml`.

    Raises EnvironmentProblem when the installation lacks it.
    """
    if not _DATA.is_dir():
        found = _CHECKOUT / path
    elif path.split("/")[0] in _IN_COLLECTION:
        found = _COLLECTION / path
    else:
        found = _DATA / path
    if not found.exists():
        raise EnvironmentProblem(
            f"{found} is missing: this installation of vnuma is incomplete.",
            fix="Install its wheel again with pip install --force-reinstall, or make setup in a checkout.",
        )
    return found


def typed(path: str) -> str:
    """A shipped file as a shell in this folder can be given it: relative if it is below."""
    found = asset(path)
    with suppress(FileNotFoundError):  # this folder was removed
        if found.is_relative_to(Path.cwd()):
            found = found.relative_to(Path.cwd())
    return shlex.quote(str(found))


def lab_program() -> Path | None:
    """The lab's program in the wheel; None in a checkout and in the wheel for any platform."""
    program = _DATA / "bin" / "vnuma-lab"
    return program if os.access(program, os.X_OK) else None


def home() -> Path:
    """Folder for stores, the running lab and logs: `VNUMA_HOME`, else the user's state folder.

    Does not create it.
    """
    chosen = os.environ.get("VNUMA_HOME")
    return Path(chosen).expanduser().absolute() if chosen else user_state_path("vnuma")


def cache() -> Path:
    """Folder for what can be recreated, such as the built lab. Does not create it."""
    return user_cache_path("vnuma")
