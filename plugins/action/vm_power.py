# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Power a VM on, or shut its guest down."""

from __future__ import annotations

from vnuma.ansible.action import step_plugin
from vnuma.engine.actions import by_hand, steps
from vnuma.engine.cell.boot import boot_cell

ActionModule = step_plugin(
    __file__, take=(boot_cell, by_hand.power), plan=(steps.plan_boot, by_hand.plan_power)
)
