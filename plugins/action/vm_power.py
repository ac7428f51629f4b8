# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Power a VM on, or shut its guest down."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec
from vnuma.engine.ansible_api import actions, actions_by_hand
from vnuma.engine.cell.boot import boot_cell


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        if check:
            return self.plan_step(options, actions.plan_boot, actions_by_hand.plan_power)
        return self.take_step(options, boot_cell, actions_by_hand.power)
