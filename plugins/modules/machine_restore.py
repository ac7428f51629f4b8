#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: machine_restore
short_description: Put a Linux machine back as it was before the run
version_added: "0.1.0"
description:
  - >-
    Puts the kernel settings that the study holds back as the baseline has them, reads them back, and removes
    the study's files.
  - A machine that the run does not hold is left alone. Nobody's later change is overwritten.
  - Works on the target by Ansible's own connection, as root (C(become)).
author: vnuma contributors (@vnuma)
options:
  on_conflict:
    description: >-
      What to do when somebody else changed a setting that the study holds. C(refuse) changes none and keeps
      the lease.
    type: str
    choices: [refuse, theirs, baseline]
    default: refuse
  when:
    description: C(finished) leaves a machine alone while its next cell is another play's to measure.
    type: str
    choices: [always, finished]
    default: always
extends_documentation_fragment:
  - vnuma.vnuma.target.machine
  - vnuma.vnuma.target.run
attributes:
  check_mode:
    support: full
    description: Returns the settings that a real run then changes; the study's files are not among them.
  diff_mode:
    support: full
    description: Shows each of them before and after.
"""

EXAMPLES = r"""
- name: Put the machine back
  vnuma.vnuma.machine_restore:
    target: "{{ vm_restore_target }}"
    run: quick.4
  become: true
"""

RETURN = r"""
restored:
  description: How many kernel settings read back equal.
  type: dict
  returned: when the machine was restored, not in check mode
  sample: {vm: db1, changed: false, settings: 2, equal: 2, power: poweredOn}
changes:
  description: What was restored, or in check mode would be, with its values before and after.
  type: list
  elements: dict
  returned: when the run holds the machine
  sample:
    - {setting: linux.numa_balancing, before: '0', after: '1'}
why:
  description: Why the machine was left alone.
  type: str
  returned: when it was
  sample: 'closson2009.1 does not hold db1: it was restored, or never taken over'
"""
