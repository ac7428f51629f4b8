# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Run the workload on a booted VM."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec, vm_of
from vnuma.engine.ansible_api import actions, actions_by_hand, check_mode


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        target = vm_of(options)
        if options["attempt"]:
            step = check_mode.measure if check else actions.measure
            return step(options["run"], options["attempt"], target)
        return {"changed": False, "timings": []} if check else actions_by_hand.benchmark(target, options)
