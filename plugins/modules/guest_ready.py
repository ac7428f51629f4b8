#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: guest_ready
short_description: Wait until guest and SQL Server are ready, and see what the guest sees
version_added: "0.1.0"
description:
  - Ready means that SQL Server accepts a login, was started after the power-on, and the guest is quiet.
  - In a run the topology seen is compared with what the arm needs; another one makes the attempt invalid.
  - Runs on the controller; nothing is copied to the guest.
author: vnuma contributors (@vnuma)
options:
  timeout:
    description: Seconds until SQL Server must be ready. In a run the study decides.
    type: float
    default: 600
  quiet_for:
    description: Seconds in a row for which the guest must be quiet. 0 does not wait.
    type: float
    default: 0
  quiet_cpu_percent:
    description: CPU use below which the guest is quiet.
    type: float
    default: 10
extends_documentation_fragment:
  - vnuma.vnuma.target
  - vnuma.vnuma.target.run
attributes:
  check_mode:
    support: full
    description: Waits for nothing and returns nothing seen.
"""

EXAMPLES = r"""
- name: Wait for SQL Server
  vnuma.vnuma.guest_ready:
    target: "{{ guest_ready_target }}"
"""

RETURN = r"""
guest:
  description: Topology as SQL Server sees it.
  type: dict
  returned: always
server:
  description: SQL Server's version and settings.
  type: dict
  returned: always
"""
