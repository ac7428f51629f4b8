# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Restore a VM to its state before the run."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, argument_spec, vm_of
from vnuma.engine.ansible_api import actions


class ActionModule(VnumaAction):
    """Thin: options in, the engine's answer out."""

    spec = argument_spec(__file__)

    def act(self, options: Options, *, check: bool) -> Options:
        """Put a VM back as it was before the run."""
        target = vm_of(options)
        if check:
            return actions.plan_restore(options["run"], target, options["on_conflict"], options["when"])
        return actions.restore(options["run"], target, options["on_conflict"], options["when"])
