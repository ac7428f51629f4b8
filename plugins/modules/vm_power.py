#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: vm_power
short_description: Power a VM on, or shut its guest down
version_added: "0.1.0"
description:
  - Powers on where the VM is and waits until VMware Tools run, or shuts the guest down through Tools.
  - Runs on the controller; nothing is copied to the guest.
author: vnuma contributors (@vnuma)
options:
  state:
    description: The wanted power state. In a run it is always C(on).
    type: str
    choices: ['on', 'off']
    default: 'on'
  shutdown_timeout:
    description: Seconds that the guest may take to shut down.
    type: float
    default: 600
  on_shutdown_timeout:
    description: What happens then. C(power_off) cuts the power.
    type: str
    choices: [fail, power_off]
    default: fail
  tools_timeout:
    description: Seconds until VMware Tools must run.
    type: float
    default: 600
extends_documentation_fragment:
  - vnuma.vnuma.target
  - vnuma.vnuma.target.attempt
  - vnuma.vnuma.target.permit
attributes:
  check_mode:
    support: full
    description: Tells whether the power state would change.
  diff_mode:
    support: full
    description: Shows the power state before and after.
"""

EXAMPLES = r"""
- name: Boot the VM
  vnuma.vnuma.vm_power:
    target: "{{ vm_power_target }}"
    state: 'on'
"""

RETURN = r"""
power:
  description: The power state afterwards.
  type: str
  returned: always
  sample: 'on'
"""
