"""Build hook: one wheel carries the package, the Ansible collection and the files both need.

A collection under `ansible_collections/` in site-packages is found by Ansible without any
configuration. An editable install links the checkout itself as that collection, so that an edit
takes effect at once; a static `force-include` would copy the files and ignore later edits.

A wheel is pure, unless `VNUMA_WHEEL_LAB` names the lab's program (tools/dist.py builds it): then the
wheel carries it, and is for its processor alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COLLECTION = "ansible_collections/vnuma/vnuma"
COLLECTION_PARTS = ("plugins", "roles", "playbooks", "meta", "galaxy.yml")
DATA = "vnuma/_data"
DATA_PARTS = ("templates", "studies", "inventories", "lab")
LAB_PROGRAM = f"{DATA}/bin/vnuma-lab"
PROCESSORS = {0x3E: "x86_64", 0xB7: "aarch64"}
"""ELF's e_machine, and what wheels call it."""


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
        program = os.environ.get("VNUMA_WHEEL_LAB")
        if program:
            build_data["force_include"][program] = LAB_PROGRAM
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform(Path(program))}"


def _platform(program: Path) -> str:
    """The platform that a static program for Linux runs on, read off its ELF header.

    It needs no C library. manylinux_2_17 is the oldest platform that Go's own oldest kernel fits, and the
    one of the wheels of Go itself.
    """
    header = program.read_bytes()[:20]
    machine = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or machine not in PROCESSORS:
        raise ValueError(
            f"VNUMA_WHEEL_LAB: {program} is not a Linux program for {' or '.join(PROCESSORS.values())}"
        )
    return f"manylinux_2_17_{PROCESSORS[machine]}"


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
