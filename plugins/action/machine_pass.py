# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Make one pass over a Linux machine."""

from __future__ import annotations

from vnuma.ansible.action import ConnectionShell, Options, VnumaAction, argument_spec, target_of
from vnuma.engine.ansible_api import actions


class ActionModule(VnumaAction):
    spec = argument_spec(__file__)
    _requires_connection = True  # unlike the others it works on the target

    def act(self, options: Options, *, check: bool) -> Options:
        """Check mode does nothing."""
        if check:
            return {"changed": False, "skipped": True, "msg": "Check mode: no pass was made."}
        target = target_of(options)
        return actions.measure_machine(
            options["run"], options["attempt"], target, ConnectionShell(self, target.name)
        )
