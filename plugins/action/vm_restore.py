# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Restore a target to its state before the run."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec, target_of
from vnuma.engine.actions import steps


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        target = target_of(options)
        step = steps.plan_restore if check else steps.restore
        return step(options["run"], target, options["on_conflict"], options["when"], self.shell_of(target))
