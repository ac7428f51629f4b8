#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: vcenter_role
short_description: Give the study's account its role on a VM
version_added: "0.1.0"
description:
  - Makes the role with the privileges of docs/reference/vcenter-role.md, or adds what it lacks.
  - Gives it to a user on the VM.
  - Gives that user Read-only on the root folder if it has no permission there.
  - Asks vCenter afterwards whether the user holds every privilege.
author: vnuma contributors (@vnuma)
options:
  name:
    description: The role's name.
    type: str
    default: vnuma
  principal:
    description: The user who gets the role, as in C(vnuma@vsphere.local).
    type: str
    required: true
extends_documentation_fragment:
  - vnuma.vnuma.target
attributes:
  check_mode:
    support: full
    description: Tells which privileges and permissions would be added.
"""

EXAMPLES = r"""
- name: Give the study's account its role
  vnuma.vnuma.vcenter_role:
    target: "{{ study_vm }}"
    principal: vnuma@vsphere.local
"""

RETURN = r"""
changes:
  description: Privileges that the role lacked, and permissions that were missing.
  type: dict
  returned: always
  sample:
    privileges: [VirtualMachine.Config.CPUCount]
    permission: vnuma for study@corp on sql16
    read_only: null
"""
