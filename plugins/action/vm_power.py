# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Power a VM on, or shut its guest down."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin
from vnuma.engine.actions import by_hand, steps
from vnuma.engine.cell.boot import boot_cell


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    if check:
        return task.plan_step(options, steps.plan_boot, by_hand.plan_power)
    return task.take_step(options, boot_cell, by_hand.power)


ActionModule = plugin(__file__, _act)
