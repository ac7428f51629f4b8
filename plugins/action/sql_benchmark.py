# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Run the workload on a booted VM."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec
from vnuma.engine.ansible_api import actions, actions_by_hand


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        if check:
            return self.plan_step(options, actions.plan_measure, lambda *_: {"changed": False, "timings": []})
        return self.take_step(options, actions.measure, actions_by_hand.benchmark)
