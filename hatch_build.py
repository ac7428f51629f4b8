"""Build hook: one wheel carries the package, the Ansible collection and the files both need.

A collection under `ansible_collections/` in site-packages is found by Ansible without any
configuration. An editable install links the checkout itself as that collection, so that an edit
takes effect at once; a static `force-include` would copy the files and ignore later edits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COLLECTION = "ansible_collections/vnuma/vnuma"
COLLECTION_PARTS = ("plugins", "roles", "playbooks", "meta", "galaxy.yml")
DATA = "vnuma/_data"
DATA_PARTS = ("templates", "studies", "inventories", "lab")


class VnumaBuildHook(BuildHookInterface[Any]):
    """Adds collection and data to a wheel; links them for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hatchling calls this before a wheel is built; `version` is `standard` or `editable`."""
        root = Path(self.root)
        if version == "editable":
            _link_collection(root)
            return
        for base, parts in ((COLLECTION, COLLECTION_PARTS), (DATA, DATA_PARTS)):
            for part in parts:
                for path in _shipped(root / part):
                    build_data["force_include"][str(path)] = f"{base}/{path.relative_to(root).as_posix()}"


def _link_collection(root: Path) -> None:
    """Make the checkout importable as the collection `vnuma.vnuma` (the folder is git-ignored)."""
    link = root / ".ansible" / "collections" / COLLECTION
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink():
        link.unlink()
    link.symlink_to("../../../..", target_is_directory=True)


def _shipped(path: Path) -> Iterator[Path]:
    """The files under `path` that users need: no tests of the Go sources, no caches."""
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path).parts
        hidden = any(part.startswith(".") or part in ("__pycache__", "testdata") for part in relative)
        if file.is_file() and not hidden and not file.name.endswith("_test.go"):
            yield file
