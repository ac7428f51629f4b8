# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Run the workload on a booted VM."""

from __future__ import annotations

from vnuma.ansible.action import Behaviour, StepAction, argument_spec
from vnuma.engine.ansible_api import actions, actions_by_hand, check_mode


class ActionModule(StepAction):
    spec = argument_spec(__file__)
    step = Behaviour(actions.measure, check_mode.measure)
    by_hand = Behaviour(actions_by_hand.benchmark, lambda *_: {"changed": False, "timings": []})
