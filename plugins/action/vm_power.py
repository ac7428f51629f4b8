# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Power a VM on, or shut its guest down."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec
from vnuma.engine.actions import by_hand, steps
from vnuma.engine.cell.boot import boot_cell


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        if check:
            return self.plan_step(options, steps.plan_boot, by_hand.plan_power)
        return self.take_step(options, boot_cell, by_hand.power)
