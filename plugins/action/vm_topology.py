# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Bring a VM into an arm's shape."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec
from vnuma.engine.actions import by_hand, steps
from vnuma.engine.cell.shape import shape_cell


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        if check:
            return self.plan_step(options, steps.plan_shape, by_hand.plan_topology)
        return self.take_step(options, shape_cell, by_hand.topology)
