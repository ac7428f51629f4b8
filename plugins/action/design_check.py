# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Check a VM against the design rules."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin, target_of
from vnuma.engine.actions.by_hand import design_check


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    """Check mode does the same, since nothing is changed."""
    return design_check(target_of(options), options)


ActionModule = plugin(__file__, _act)
