#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: machine_pass
short_description: Measure a cell on a Linux machine as it is
version_added: "0.1.0"
description:
  - Makes the workload's files, drops the page cache, places the file, proves where it lies, and measures.
  - Kernel settings that the study holds are restored at the end of the pass.
  - >-
    Works on the target by Ansible's own connection, as root (C(become)); it needs a POSIX shell there and no
    Python.
author: vnuma contributors (@vnuma)
extends_documentation_fragment:
  - vnuma.vnuma.target.machine
  - vnuma.vnuma.target.attempt
attributes:
  check_mode:
    support: none
    description: A pass is not predicted, and is skipped.
"""

EXAMPLES = r"""
- name: Make one pass over the machine
  vnuma.vnuma.machine_pass:
    target: "{{ cell_target }}"
    run: quick.4
    attempt: "{{ claim.attempt }}"
  become: true
"""

RETURN = r"""
samples:
  description: How many samples were stored.
  type: int
  returned: when a cell was measured
  sample: 12
"""
