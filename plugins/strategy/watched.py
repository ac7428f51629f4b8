# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""host_pinned, and a worker that dies ends the play."""

from __future__ import annotations

DOCUMENTATION = r"""
---
name: watched
short_description: Executes tasks on each host without interruption, and ends the play when a worker dies
version_added: "0.1.0"
description:
  - Works as P(ansible.builtin.host_pinned#strategy) does.
  - A worker process that is killed, by the system for want of memory for example, never gives its result, and
    P(ansible.builtin.host_pinned#strategy) waits for it for ever. This strategy ends the play instead, so
    that C(vnuma run), or whoever launched it, can begin the cell again.
author: vnuma contributors (@vnuma)
"""

import threading
import time
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.strategy.host_pinned import StrategyModule as HostPinned

LOOK_S = 0.02
"""Seconds between two looks for results while none is there."""

END_S = 5.0
"""How long the queue of results may take to be closed once a worker has died."""


class StrategyModule(HostPinned):  # type: ignore[misc]  # ansible-core ships no types
    """Looks after the workers each time results are collected, 50 times a second.

    Ansible itself looks a thousand times a second, which takes half a core from what the play measures.
    """

    def _process_pending_results(self, *args: Any, **kwargs: Any) -> Any:
        """Results so far. Raises AnsibleError when one can never come."""
        if self._tqm.has_dead_workers():
            raise AnsibleError("A worker process has died. The play ends here; its cells will start again.")
        if self._pending_results and not self._results:
            time.sleep(LOOK_S)
        return super()._process_pending_results(*args, **kwargs)

    def cleanup(self) -> None:
        """End the play's collecting of results. It does not wait for ever for what a dead worker took along.

        A worker that dies as it sends its result keeps the queue locked, or leaves half of the result there.
        After an interrupt it may die while this is under way. Raises what went wrong in the collecting's end.
        """
        failed: list[BaseException] = []

        def end() -> None:
            try:
                super(StrategyModule, self).cleanup()
            except BaseException as error:  # noqa: BLE001 - raised below, where the play hears of it
                failed.append(error)

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(END_S)
        while ending.is_alive() and not self._tqm.has_dead_workers():
            ending.join(END_S)
        if failed:
            raise failed[0]
