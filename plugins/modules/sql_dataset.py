#!/usr/bin/python
# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = r"""
---
module: sql_dataset
short_description: Prepare or drop the study's dataset
version_added: "0.1.0"
description:
  - Creates a database of its own with the two AdventureWorks tables, memory-optimised, generated or copied.
  - Verifies count and checksum when they are there. A database that vnuma did not create is refused.
  - Runs on the controller; nothing is copied to the guest.
author: vnuma contributors (@vnuma)
options:
  state:
    description: Whether the dataset should be there.
    type: str
    choices: [present, absent]
    default: present
  database:
    description: Name of the database.
    type: str
    default: vnuma_study
  source:
    description: C(generated), or the name of an AdventureWorks database to copy from.
    type: str
    default: generated
  transaction_history_rows:
    description: Rows to generate for Production.TransactionHistory. The default is AdventureWorks' number.
    type: int
    default: 113443
  sales_order_detail_rows:
    description: Rows to generate for Sales.SalesOrderDetail. The default is AdventureWorks' number.
    type: int
    default: 121317
extends_documentation_fragment:
  - vnuma.vnuma.target
attributes:
  check_mode:
    support: full
    description: Tells whether anything would be made or dropped.
  diff_mode:
    support: full
    description: Shows the dataset's database before and after.
"""

EXAMPLES = r"""
- name: Prepare the dataset
  vnuma.vnuma.sql_dataset:
    target: "{{ sql_dataset_target }}"

- name: Drop it
  vnuma.vnuma.sql_dataset:
    target: "{{ sql_dataset_target }}"
    state: absent
"""

RETURN = r"""
dataset:
  description: Rows and checksums of the tables.
  type: dict
  returned: when present, not in check mode
  sample:
    database: vnuma_study
    source: generated
    durability: SCHEMA_AND_DATA
    tables:
      Production.TransactionHistory: {rows: 113443, checksum: 600955446607}
      Sales.SalesOrderDetail: {rows: 121317, checksum: 152460710115}
"""
