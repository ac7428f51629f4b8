#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: sql_benchmark
short_description: Run the workload on a booted VM
version_added: "0.1.0"
description:
  - In a run, prepares or verifies the study's dataset, then measures the cell and stores every iteration.
  - Outside a run, times the workload and returns the timings.
  - Runs on the controller; a workload that uses the guest's shell runs there, as root (C(become)).
author: vnuma contributors (@vnuma)
options:
  workload:
    description: Workload as in a study file. Needed outside a run.
    type: dict
    default: {}
  database:
    description: Database with the dataset. In a run the study decides.
    type: str
    default: vnuma_study
  iterations:
    description: Timed iterations outside a run.
    type: int
    default: 1
extends_documentation_fragment:
  - vnuma.vnuma.target
  - vnuma.vnuma.target.attempt
attributes:
  check_mode:
    support: full
    description: Measures nothing.
  diff_mode:
    support: full
    description: In a run, shows the database that is made, and the pool for it.
"""

EXAMPLES = r"""
- name: Time the cross join once
  vnuma.vnuma.sql_benchmark:
    target: "{{ sql_benchmark_target }}"
    workload:
      sizes: [500]
      forms: [client]
"""

RETURN = r"""
dataset:
  description: Rows and checksums of the tables, in a run.
  type: dict
  returned: in a run
  sample:
    database: vnuma_study
    source: generated
    durability: SCHEMA_AND_DATA
    tables:
      Production.TransactionHistory: {rows: 113443, checksum: 600955446607}
      Sales.SalesOrderDetail: {rows: 121317, checksum: 152460710115}
samples:
  description: Number of samples stored, in a run.
  type: int
  returned: in a run
  sample: 12
timings:
  description: Timings in milliseconds, outside a run.
  type: list
  elements: dict
  returned: outside a run
  sample:
    - {size: 500, form: client, iteration: 1, cpu_ms: 1203, elapsed_ms: 4994, client_ms: 4995.2, rows: 250000}
"""
