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

from collections import deque
from threading import Event
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.strategy.host_pinned import StrategyModule as HostPinned

LOOK_S = 0.05
"""The longest time in seconds between two looks at the workers."""


class StrategyModule(HostPinned):  # type: ignore[misc]  # ansible-core ships no types
    """Looks after the workers each time results are collected, and sleeps until there is one to collect.

    Ansible itself asks a thousand times a second whether a worker has ended, which takes half a core from
    what the play measures.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._arrived = Event()
        self._went_on = True
        self._spare = False
        self._results: deque[Any] = _Announced(self._arrived)  # no worker has been started yet

    def _queue_task(self, *args: Any, **kwargs: Any) -> Any:
        """A worker that has given its result needs a while to end: the next one does not wait for that."""
        self._went_on = True
        if not self._spare:  # how many hosts are worked on at once has been counted before
            self._spare = True
            self._workers.extend([None] * len(self._workers))
        return super()._queue_task(*args, **kwargs)

    def _execute_meta(self, *args: Any, **kwargs: Any) -> Any:
        self._went_on = True
        return super()._execute_meta(*args, **kwargs)

    def _process_pending_results(self, *args: Any, **kwargs: Any) -> Any:
        """Results, once there is one or a host can go on. AnsibleError when one can never come."""
        if self._tqm.has_dead_workers():
            raise AnsibleError("A worker process has died: the play ends here, its cells are begun again.")
        self._arrived.clear()
        if self._pending_results and not self._went_on and not self._results:
            self._arrived.wait(LOOK_S)
        found = super()._process_pending_results(*args, **kwargs)
        self._went_on = bool(found)
        return found


class _Announced(deque[Any]):
    """What the thread that reads workers' results puts here is announced."""

    def __init__(self, arrived: Event) -> None:
        super().__init__()
        self._arrived = arrived

    def append(self, result: Any) -> None:
        """Add a result."""
        super().append(result)
        self._arrived.set()
