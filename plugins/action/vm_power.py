# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Power a VM on, or shut its guest down."""

from __future__ import annotations

from vnuma.ansible.action import Behaviour, StepAction, argument_spec
from vnuma.engine.ansible_api import actions, actions_by_hand, check_mode


class ActionModule(StepAction):
    spec = argument_spec(__file__)
    step = Behaviour(actions.boot, check_mode.boot)
    by_hand = Behaviour(actions_by_hand.power, actions_by_hand.plan_power)
