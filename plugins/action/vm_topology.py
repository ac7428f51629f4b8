# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Bring a VM into an arm's shape."""

from __future__ import annotations

from vnuma.ansible.action import step_plugin
from vnuma.engine.actions import by_hand, steps
from vnuma.engine.cell.shape import shape_cell

ActionModule = step_plugin(
    __file__, take=(shape_cell, by_hand.topology), plan=(steps.plan_shape, by_hand.plan_topology)
)
