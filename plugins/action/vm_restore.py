# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Restore a VM to its state before the run."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec, vm_of
from vnuma.engine.ansible_api import actions


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        step = actions.plan_restore if check else actions.restore
        return step(options["run"], vm_of(options), options["on_conflict"], options["when"])
