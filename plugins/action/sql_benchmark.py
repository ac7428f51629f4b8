# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Run the workload on a booted VM."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin
from vnuma.engine.actions import by_hand, steps


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    if check:
        return task.plan_step(options, steps.plan_measure, lambda *_: {"changed": False, "timings": []})
    return task.take_step(options, steps.measure, by_hand.benchmark)


ActionModule = plugin(__file__, _act)
