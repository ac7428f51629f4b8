"""A fix as variables of this collection's role vm_topology."""

from __future__ import annotations

import json

from vnuma.checks.finding import Fix
from vnuma.checks.fixes.wording import Target, Written

_NO_ARM = "the role vm_topology has no variable for it"


def ansible(fix: Fix, _target: Target) -> Written:
    """Variables for the VM's host_vars, as YAML (JSON is YAML); the role shuts the guest down."""
    lines = tuple(f"{name}: {json.dumps(value)}" for name, value in fix.ansible.items())
    left_out = {} if lines else {edit.setting: _NO_ARM for edit in fix.change}
    return Written(lines, left_out, shuts_down=True)
