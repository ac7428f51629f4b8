#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: design_check
short_description: Check a VM, its host and its cluster against the design rules
version_added: "0.1.0"
description:
  - Reads the VM, its host and cluster from vCenter, and SQL Server where asked, and evaluates every rule.
  - What could not be read is not evaluated, with the reason; it neither passes nor fails.
  - Runs on the controller; nothing is changed and nothing is copied to the guest.
author: vnuma contributors (@vnuma)
options:
  sql:
    description: Whether to log in to SQL Server too, for the rules on it.
    type: bool
    default: false
  waivers:
    description: File of accepted findings on the controller. Empty for none.
    type: str
    default: ''
  fail_on:
    description: From which severity on a finding that nobody waived fails the task.
    type: str
    choices: [block, warn, never]
    default: block
extends_documentation_fragment:
  - vnuma.vnuma.target
attributes:
  check_mode:
    support: full
    description: Does the same, since nothing is changed.
  diff_mode:
    support: none
    description: Nothing is changed.
"""

EXAMPLES = r"""
- name: Let no VM with a blocking fault go live
  vnuma.vnuma.design_check:
    target: "{{ design_check_target }}"
    fail_on: block
  register: checked
"""

RETURN = r"""
check:
  description:
    - The check as C(vnuma check --format json) writes it. Each finding has rule, severity, object, observed
      values, consequence, and the fix as settings, as an arm, and as variables of the role vm_topology.
  type: dict
  returned: always
  sample:
    summary: {vms: 1, vms_block: 1, checks: 70, checks_not_evaluated: 33}
    findings: [{rule: T11, severity: block, title: CPU hot-add hides NUMA from the guest}]
"""
