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
  - Then removes what a workload left by the guest's shell, as root (C(become)).
  - A VM that the run does not hold is left alone. Nobody's later change is overwritten.
  - Nothing is copied to the guest.
author: vnuma contributors (@vnuma)
options:
  on_conflict:
    description: What to do when somebody else changed the VM. C(refuse) changes nothing and keeps the lease.
    type: str
    choices: [refuse, theirs, baseline]
    default: refuse
  when:
    description: C(finished) leaves a VM alone while its next cell is another play's to measure.
    type: str
    choices: [always, finished]
    default: always
extends_documentation_fragment:
  - vnuma.vnuma.target
  - vnuma.vnuma.target.run
attributes:
  check_mode:
    support: full
    description: >-
      Returns what a real run then changes: settings, power, SQL Server's own, the run's mark, the dataset.
      What SQL Server has is not known while the VM is off.
  diff_mode:
    support: full
    description: Shows each of them before and after.
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
  returned: when the VM was restored, not in check mode
  sample: {vm: sql16, changed: true, settings: 21, equal: 21, power: poweredOn}
changes:
  description: What was restored, or in check mode would be, with its values before and after.
  type: list
  elements: dict
  returned: when the run holds the VM
  sample:
    - {setting: numCoresPerSocket, before: 4, after: 16}
powered_off:
  description: Whether the VM was, or would be, shut down.
  type: bool
  returned: when the run holds the VM
why:
  description: Why the VM was left alone.
  type: str
  returned: when it was
  sample: 'quick.4 does not hold sql16: it was restored, or never taken over'
"""
