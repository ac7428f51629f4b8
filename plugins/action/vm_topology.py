# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Bring a VM into an arm's shape."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin
from vnuma.engine.actions import by_hand, steps
from vnuma.engine.cell.shape import shape_cell


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    if check:
        return task.plan_step(options, steps.plan_shape, by_hand.plan_topology)
    return task.take_step(options, shape_cell, by_hand.topology)


ActionModule = plugin(__file__, _act)
