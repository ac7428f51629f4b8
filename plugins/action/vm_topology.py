# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Bring a VM into an arm's shape."""

from __future__ import annotations

from vnuma.ansible.action import Behaviour, StepAction, argument_spec
from vnuma.engine.ansible_api import actions, actions_by_hand, check_mode


class ActionModule(StepAction):
    spec = argument_spec(__file__)
    step = Behaviour(actions.shape, check_mode.shape)
    by_hand = Behaviour(actions_by_hand.topology, actions_by_hand.plan_topology)
