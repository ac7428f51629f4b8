# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Wait until guest and SQL Server are ready, and read the guest's topology."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin
from vnuma.engine.actions import by_hand, steps
from vnuma.engine.cell.boot import ready_cell


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    if check:
        return task.plan_step(options, steps.plan_ready, lambda *_: {"changed": False})
    return task.take_step(options, ready_cell, by_hand.ready)


ActionModule = plugin(__file__, _act)
