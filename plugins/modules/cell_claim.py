#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: cell_claim
short_description: Claim the next cell of a run
version_added: "0.1.0"
description:
  - Asks the engine which cell of the run comes next on this VM, and opens an attempt at it.
  - Waits while another VM on the same ESXi host is being measured.
  - >-
    In a play that C(vnuma run) does not supervise, takes the VM over first: lease, mark and baseline.
    A run that another process looks after is refused.
  - Runs on the controller; nothing is copied to the guest.
author: vnuma contributors (@vnuma)
extends_documentation_fragment:
  - vnuma.vnuma.target
  - vnuma.vnuma.target.run
attributes:
  check_mode:
    support: full
    description: >-
      Tells which cell is next, with the attempt and the mark to come. Neither claims nor stores anything.
  diff_mode:
    support: full
    description: Shows the run's mark on the VM before and after.
"""

EXAMPLES = r"""
- name: Claim the next cell
  vnuma.vnuma.cell_claim:
    target: "{{ cell_target }}"
    run: quick.4
  register: claim
"""

RETURN = r"""
claimed:
  description: Whether there is a cell to measure.
  type: bool
  returned: always
attempt:
  description: The attempt, to be handed to the other actions.
  type: dict
  returned: when claimed, and of a VM in check mode
  sample: {id: 7, cell_id: 3, number: 1, token: 2, arm: 4x4, label: 4x4, block: 1, position: 0}
why:
  description: Why no cell was claimed. In check mode, which cell is next.
  type: str
  returned: when not claimed
  sample: every cell has ended
"""
