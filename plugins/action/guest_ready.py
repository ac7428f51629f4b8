# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Wait until guest and SQL Server are ready, and read the guest's topology."""

from __future__ import annotations

from vnuma.ansible.action import Behaviour, StepAction, argument_spec
from vnuma.engine.ansible_api import actions, actions_by_hand, check_mode


class ActionModule(StepAction):
    spec = argument_spec(__file__)
    step = Behaviour(actions.ready, check_mode.ready)
    by_hand = Behaviour(actions_by_hand.ready, lambda *_: {"changed": False})
