# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Restore a target to its state before the run."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin, target_of
from vnuma.engine.actions import steps


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    target = target_of(options)
    step = steps.plan_restore if check else steps.restore
    return step(options["run"], target, options["on_conflict"], options["when"], task.shell_of(target))


ActionModule = plugin(__file__, _act)
