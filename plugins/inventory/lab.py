# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""The running lab as an inventory."""

from __future__ import annotations

DOCUMENTATION = r"""
---
name: lab
short_description: VMs and Linux machines of the running vnuma lab
version_added: "0.1.0"
description:
  - Reads which lab runs (C(vnuma lab up)) and puts its VMs into the group C(vnuma_vms),
    its Linux machines into C(vnuma_machines).
  - Everything measured on them is simulated.
author: vnuma contributors (@vnuma)
options:
  plugin:
    description: Must be C(vnuma.vnuma.lab).
    type: str
    required: true
    choices: [vnuma.vnuma.lab]
"""

EXAMPLES = r"""
plugin: vnuma.vnuma.lab
"""

from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

from vnuma.engine.access.host_variables import NO_LAB, lab_hosts


class InventoryModule(BaseInventoryPlugin):  # type: ignore[misc]  # ansible-core ships no types
    """Adds the lab's VMs and machines."""

    NAME = "vnuma.vnuma.lab"

    def verify_file(self, path: str) -> bool:
        """Accept only files that name this plugin."""
        return bool(super().verify_file(path)) and path.endswith((".vnuma.yml", ".vnuma.yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Read the lab's state. Without a running lab, raises an error with the command that starts it."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        hosts = lab_hosts()
        if not hosts:
            raise AnsibleParserError(f"{NO_LAB} Start one: vnuma lab up")
        for name, variables in hosts.items():
            shaped = "vnuma_vcenter" in variables
            group = self.inventory.add_group("vnuma_vms" if shaped else "vnuma_machines")
            self.inventory.add_host(name, group=group)
            for key, value in variables.items():
                self.inventory.set_variable(name, key, value)
