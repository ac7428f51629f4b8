# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Prepare or drop the study's dataset."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin, target_of
from vnuma.engine.actions import by_hand


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    target = target_of(options)
    act = by_hand.plan_dataset if check else by_hand.dataset
    return act(target, options)


ActionModule = plugin(__file__, _act)
