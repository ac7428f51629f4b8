"""The inventory of a play that vnuma starts: only its hosts, with all templates and vault values resolved.

A play that reads the user's inventory would need everything that its lookups and vault need: environment
variables, which ansible-runner would write to disk, and a vault password, possibly from a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vnuma.engine.access.inventory import connection_variables
from vnuma.engine.access.secrets import write_private
from vnuma.engine.access.target import AnyTarget, Kind

GROUPS = {Kind.VM: "vnuma_vms", Kind.MACHINE: "vnuma_machines"}
"""The group in which a play finds the targets of a kind."""


def write_play_inventory(
    folder: Path, inventory: Path, targets: Mapping[str, AnyTarget], others: Iterable[str] = ()
) -> Path:
    """Write FOLDER/hosts.json, readable only by this user. `others` are hosts reached as machines are.

    A VM's passwords are references that the run's private file resolves; the passwords with which Ansible
    reaches a machine are values. Raises InputError and EnvironmentProblem as reading does.
    """
    own = {name: target.variables() for name, target in targets.items()}
    hosts: dict[str, Any] = {name: variables for name, variables in own.items() if variables is not None}
    if reached := [*(name for name in targets if name not in hosts), *others]:
        hosts |= connection_variables(inventory, reached)
    children: dict[str, Any] = {group: {"hosts": {}} for group in GROUPS.values()}
    for name, target in targets.items():
        children[GROUPS[target.kind]]["hosts"][name] = {}
    document = {"all": {"hosts": _literal(hosts), "children": children}}
    return write_private(folder / "hosts.json", json.dumps(document))


def _literal(value: Any) -> Any:
    """A value that Ansible takes literally: braces in it are not templated again."""
    if isinstance(value, Mapping):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value
