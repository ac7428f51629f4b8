#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: vm_restore
short_description: Put a VM back as it was before the run
version_added: "0.1.0"
description:
  - Puts every setting of the baseline back, reads it back, and returns the VM to its power state.
  - While cells of this VM are left to measure in a supervised run, it leaves the VM to the next play.
  - Runs on the controller; nothing is copied to the guest.
author: vnuma contributors (@vnuma)
options:
  on_conflict:
    description: What to do when somebody else changed the VM. C(refuse) changes nothing and keeps the lease.
    type: str
    choices: [refuse, theirs, baseline]
    default: refuse
extends_documentation_fragment:
  - vnuma.vnuma.target
  - vnuma.vnuma.target.run
attributes:
  check_mode:
    support: full
    description: Returns the settings that would be put back.
"""

EXAMPLES = r"""
- name: Put the VM back
  vnuma.vnuma.vm_restore:
    target: "{{ vm_restore_target }}"
    run: quick.4
"""

RETURN = r"""
restored:
  description: How many settings read back equal, and the power state.
  type: dict
  returned: when something was restored
why:
  description: Why nothing was done.
  type: str
  returned: otherwise
"""
