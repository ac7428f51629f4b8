# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Restore a Linux machine to its state before the run."""

from __future__ import annotations

from vnuma.ansible.action import ConnectionShell, Options, VnumaAction, argument_spec, target_of
from vnuma.engine.ansible_api import actions


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)
    _requires_connection = True  # unlike the others it works on the target

    def act(self, options: Options, *, check: bool) -> Options:
        """Check mode returns what a restore would change."""
        target = target_of(options)
        step = actions.plan_restore if check else actions.restore
        shell = ConnectionShell(self, target.name)
        return step(options["run"], target, options["on_conflict"], options["when"], shell)
