# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Wait until guest and SQL Server are ready, and read the guest's topology."""

from __future__ import annotations

from vnuma.ansible.action import step_plugin
from vnuma.engine.actions import by_hand, steps
from vnuma.engine.cell.boot import ready_cell

ActionModule = step_plugin(
    __file__, take=(ready_cell, by_hand.ready), plan=(steps.plan_ready, lambda *_: {"changed": False})
)
