# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Options that every action of the collection takes."""


class ModuleDocFragment:
    """The VM, and the run that it is part of."""

    DOCUMENTATION = r"""
options:
  target:
    description:
      - The VM and how it is reached, usually built from inventory variables.
      - Passwords are references, never values.
    type: dict
    required: true
    suboptions:
      name:
        description: Inventory name of the VM.
        type: str
        required: true
      vm:
        description: Name of the VM in vCenter, or its inventory path such as C(/DC1/vm/Test/sql16).
        type: str
        required: true
      vcenter:
        description: "vCenter or ESXi host, with C(host), C(user), C(password), C(ca_file)."
        type: dict
        required: true
      sql:
        description: "SQL Server in the VM, with C(host), C(port), C(user), C(password), C(driver)."
        type: dict
        required: true
      test_clone:
        description: Whether the VM is a test clone.
        type: bool
        default: false
"""

    RUN = r"""
options:
  run:
    description: Name of the run, as C(quick.4). Empty outside a run.
    type: str
    default: ''
  attempt:
    description: The attempt that M(vnuma.vnuma.cell_claim) opened. Empty outside a run.
    type: dict
    default: {}
"""
