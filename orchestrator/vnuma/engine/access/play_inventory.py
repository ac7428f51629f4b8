"""The inventory of a play that vnuma starts: its hosts alone, every template and vault value resolved.

A play that read the user's inventory would need all that its lookups and vault need: variables of the
environment, whose values the runner would write down, and a vault password, which may come from a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vnuma.engine.access.inventory import connection_variables
from vnuma.engine.access.secrets import write_private
from vnuma.engine.access.target import AnyTarget, Kind

_GROUPS = {Kind.VM: "vnuma_vms", Kind.MACHINE: "vnuma_machines"}


def write_play_inventory(
    folder: Path, inventory: Path, targets: Mapping[str, AnyTarget], others: Iterable[str] = ()
) -> Path:
    """Write FOLDER/hosts.json, readable by this user alone. `others` are hosts reached as machines are.

    A VM's passwords stand there as references, which the run's private file resolves; those by which Ansible
    reaches a machine stand there as values. Raises InputError and EnvironmentProblem as reading does.
    """
    own = {name: target.variables() for name, target in targets.items()}
    hosts: dict[str, Any] = {name: variables for name, variables in own.items() if variables is not None}
    if reached := [*(name for name in targets if name not in hosts), *others]:
        hosts |= connection_variables(inventory, reached)
    children: dict[str, Any] = {group: {"hosts": {}} for group in _GROUPS.values()}
    for name, target in targets.items():
        children[_GROUPS[target.kind]]["hosts"][name] = {}
    document = {"all": {"hosts": _literal(hosts), "children": children}}
    return write_private(folder / "hosts.json", json.dumps(document))


def _literal(value: Any) -> Any:
    """A value that Ansible takes as it is: text with braces is not a template again."""
    if isinstance(value, Mapping):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value
