"""Ansible's files: their YAML with line numbers, and the variables of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.domain.vm.bounded_yaml import NotYaml, read_yaml
from vnuma.errors import InputError
from vnuma.estate.design_vm import bounded_bytes, decoded

ARM = "vm_topology_arm"
HINT = "Name a playbook, a file of tasks or variables, or a host_vars folder."

_MOST_BYTES = 1_000_000
_MOST_FILES = 2_000


@dataclass(frozen=True)
class HostVars:
    """A host's variables, and the file and line where they describe its VM.

    `contradiction` says how two of its files differ about the VM; empty if they do not.
    """

    host: str
    variables: Mapping[str, Any]
    at: tuple[Path, int]
    contradiction: str = ""


def yaml_of(path: Path) -> Any:
    """The document of a YAML file. Raises InputError."""
    text = decoded(bounded_bytes(path, _MOST_BYTES, "a file of Ansible's"))
    if text.startswith("$ANSIBLE_VAULT"):
        raise InputError(f"{path} is encrypted with Ansible Vault, so it is not read.", fix=HINT)
    try:
        return read_yaml(text)
    except NotYaml as error:
        raise InputError(f"{path} is not YAML: {error} (line {error.line}).", fix=HINT) from error


def host_vars(folder: Path) -> Iterator[HostVars]:
    """Each host's variables, from HOST.yml or from HOST's files, the last by name winning.

    https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html#organizing-host-and-group-variables
    """
    files: dict[str, list[Path]] = {}
    for file in sorted(folder.rglob("*"))[:_MOST_FILES]:
        inside = file.relative_to(folder)
        if file.suffix in {".yml", ".yaml"} and file.is_file() and len(inside.parts) <= 2:
            files.setdefault(inside.parts[0] if len(inside.parts) == 2 else file.stem, []).append(file)
    for host, some in files.items():
        read = [(file, document) for file in some if isinstance(document := yaml_of(file), Mapping)]
        merged = {name: value for _, document in read for name, value in document.items()}
        stated = [(file, document) for file, document in read if ARM in document]
        at = [(file, line_of(document, ARM)) for file, document in stated]
        yield HostVars(host, merged, (at or [(some[0], 1)])[-1], _contradiction(folder, stated))


def _contradiction(folder: Path, stated: Sequence[tuple[Path, Mapping[str, Any]]]) -> str:
    if all(document[ARM] == stated[0][1][ARM] for _, document in stated):
        return ""
    places = (f"{file.relative_to(folder).as_posix()}:{line_of(document, ARM)}" for file, document in stated)
    return f"{ARM} is not the same in {' and '.join(places)}: the last is checked"


def line_of(item: object, key: str | None = None) -> int:
    """The line at which a mapping, or one of its keys, begins."""
    position = getattr(item, "lc", None)
    if position is None:
        return 1
    if key is not None and position.data and key in position.data:
        return int(position.data[key][0]) + 1
    return int(position.line) + 1
