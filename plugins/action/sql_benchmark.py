# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Run the workload on a booted VM."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec
from vnuma.engine.actions import by_hand, steps


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        if check:
            return self.plan_step(options, steps.plan_measure, lambda *_: {"changed": False, "timings": []})
        return self.take_step(options, steps.measure, by_hand.benchmark)
