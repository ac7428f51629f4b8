#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: vm_topology
short_description: Bring a VM into an arm's shape
version_added: "0.1.0"
description:
  - Shuts the guest down through VMware Tools if the change needs it, reconfigures, and reads back.
  - The VM is left off when it was shut down; M(vnuma.vnuma.vm_power) powers it on.
  - Runs on the controller; nothing is copied to the guest.
author: vnuma contributors (@vnuma)
options:
  arm:
    description: Topology and settings, as an arm of a study file. Needed outside a run.
    type: dict
    default: {}
  shutdown_timeout:
    description: Seconds that the guest may take to shut down. In a run the study decides.
    type: float
    default: 600
  on_shutdown_timeout:
    description: What happens then. C(power_off) cuts the power.
    type: str
    choices: [fail, power_off]
    default: fail
extends_documentation_fragment:
  - vnuma.vnuma.target
  - vnuma.vnuma.target.attempt
  - vnuma.vnuma.target.permit
attributes:
  check_mode:
    support: full
    description: Returns the changes that a real run makes, and makes none.
  diff_mode:
    support: full
    description: Shows each setting before and after.
"""

EXAMPLES = r"""
- name: Give the VM two sockets of eight cores
  vnuma.vnuma.vm_topology:
    target: "{{ vm_topology_target }}"
    arm:
      topology: 2x8
      affinity: physical_cores
"""

RETURN = r"""
changes:
  description: Settings with their values before and after.
  type: list
  elements: dict
  returned: always
  sample:
    - {setting: numCoresPerSocket, before: 4, after: 8}
prediction:
  description: What the guest is predicted to see.
  type: dict
  returned: always
  sample: {vnuma_nodes: 2, node_sizes: [8, 8], sql_cpu_nodes: 2, confidence: low}
powered_off:
  description: Whether the VM was, or would be, shut down.
  type: bool
  returned: always
"""
