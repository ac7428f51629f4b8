# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Bring a VM into an arm's shape."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec, vm_of
from vnuma.engine.ansible_api import actions, actions_by_hand, check_mode


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        target = vm_of(options)
        if options["attempt"]:
            step = check_mode.shape if check else actions.shape
            return step(options["run"], options["attempt"], target)
        if check:
            return actions_by_hand.plan_topology(target, options)
        self.refuse_unapproved(target)
        return actions_by_hand.topology(target, options)
