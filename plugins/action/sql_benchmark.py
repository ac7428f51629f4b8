# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Run the workload on a booted VM."""

from __future__ import annotations

from vnuma.ansible.action import step_plugin
from vnuma.engine.actions import by_hand, steps

ActionModule = step_plugin(
    __file__,
    take=(steps.measure, by_hand.benchmark),
    plan=(steps.plan_measure, lambda *_: {"changed": False, "timings": []}),
)
