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
  - Puts every kernel setting of the baseline back, reads it back, and removes the study's files.
  - A machine that the run does not hold is left alone.
  - Works on the target by Ansible's own connection, as root (C(become)).
author: vnuma contributors (@vnuma)
options:
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
    description: Tells whether the machine would be put back.
"""

EXAMPLES = r"""
- name: Put the machine back
  vnuma.vnuma.machine_restore:
    target: "{{ machine_restore_target }}"
    run: quick.4
  become: true
"""

RETURN = r"""
restored:
  description: How many kernel settings read back equal.
  type: dict
  returned: when the machine was put back, not in check mode
  sample: {vm: db1, changed: false, settings: 2, equal: 2, power: poweredOn}
why:
  description: Why the machine was left alone.
  type: str
  returned: when it was
  sample: 'closson2009.1 does not hold db1: it was put back, or never taken over'
"""
