# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Give the study's account its role on a VM."""

from __future__ import annotations

from vnuma.ansible.action import Options, VnumaAction, plugin, target_of
from vnuma.engine.access.vcenter_role import give_role


def _act(task: VnumaAction, options: Options, check: bool) -> Options:
    return give_role(target_of(options), options["name"], options["principal"], check=check)


ActionModule = plugin(__file__, _act)
