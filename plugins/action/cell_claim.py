# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Claim the next cell of a run."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin, target_of
from vnuma.engine.actions import steps

steps.prepare_workers()  # the play's parent imports this file before it forks the first worker


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    step = steps.plan_claim if check else steps.claim_cell
    return step(options["run"], target_of(options))


ActionModule = plugin(__file__, _act)
