#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: guest_ready
short_description: Wait until the guest is ready, and see what it sees
version_added: "0.1.0"
description:
  - Ready means that SQL Server accepts a login, was started after the power-on, and the guest is quiet.
  - A run whose workload uses the guest's shell waits for that instead, as root (C(become)).
  - In a run the topology seen is compared with what the arm needs; another one makes the attempt invalid.
  - Does nothing where nothing was booted. Nothing is copied to the guest.
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
  - vnuma.vnuma.target.attempt
attributes:
  check_mode:
    support: full
    description: Waits for nothing and returns nothing seen, since the VM may not be on yet.
  diff_mode:
    support: full
    description: In a run, shows what of SQL Server is put right after the boot.
"""

EXAMPLES = r"""
- name: Wait for SQL Server
  vnuma.vnuma.guest_ready:
    target: "{{ guest_ready_target }}"
    quiet_for: 30
  register: seen
"""

RETURN = r"""
guest:
  description: Topology as the guest shows it.
  type: dict
  returned: not in check mode
  sample: {vcpus: 16, sockets: 2, cores_per_socket: 8, numa_nodes: 2, sql_cpu_nodes: 2, soft_numa: 'OFF'}
server:
  description: SQL Server's version and settings.
  type: dict
  returned: with SQL Server, not in check mode
  sample: {version: 15.0.4430.1, max_dop: 0, memory_model: CONVENTIONAL}
ready:
  description: How long readiness took, and how quiet the guest was.
  type: dict
  returned: outside a run, not in check mode
  sample: {attempts: 1, waited_s: 0.01, uptime_s: 42.0}
"""
