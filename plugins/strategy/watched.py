# Copyright: vnuma contributors
# Apache License 2.0 (see LICENSE)
"""Ansible's host_pinned strategy, except that a play ends when a task can give no further result."""

from __future__ import annotations

DOCUMENTATION = r"""
---
name: watched
short_description: Executes tasks on each host without interruption, and ends a play that would wait for ever
version_added: "0.1.0"
description:
  - Works as P(ansible.builtin.host_pinned#strategy) does.
  - P(ansible.builtin.host_pinned#strategy) waits for ever for a result that can never come. This strategy
    ends the play instead, so that C(vnuma run), or whoever launched it, can begin the cell again.
  - A worker process that is killed, by the system for want of memory for example, gives no result.
  - A task for which no worker could be started has none.
  - A play that is killed takes its workers with it, on Linux. One with a result left would wait for ever for
    somebody to read it.
  - Where the play can print no more, because who launched it was killed or because a disk is full, Ansible
    stops reading results. A play whose C(vnuma run) was killed ends thus when the step under way does.
author: vnuma contributors (@vnuma)
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections import deque
from multiprocessing.util import register_after_fork
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.strategy.host_pinned import StrategyModule as HostPinned

LOOK_S = 0.2
"""Seconds between two checks of the workers while no result arrives."""

END_S = 5.0
"""Time limit for closing the queue of results after a worker has died, and for workers to end when asked."""

_PR_SET_PDEATHSIG = 1
"""Of include/uapi/linux/prctl.h."""

_AGAIN = "The play ends here; its cells will start again."


class _Results(deque[Any]):
    """Results that wake the play. Ansible's thread appends them while it holds the lock of `arrived`."""

    def __init__(self, arrived: threading.Condition) -> None:
        super().__init__()
        self._arrived = arrived

    def append(self, result: Any) -> None:
        super().append(result)
        self._arrived.notify()


class StrategyModule(HostPinned):  # type: ignore[misc]  # ansible-core ships no types
    """Takes a result as soon as it arrives, and checks the workers meanwhile.

    Ansible itself looks for results a thousand times a second, which takes half a core from the measurement.
    """

    def __init__(self, tqm: Any) -> None:
        super().__init__(tqm)
        self._results = _Results(self._results_lock)
        self._begun: list[Any] = []
        self._play = os.getpid()
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            register_after_fork(self, StrategyModule._end_with_play)

    def _end_with_play(self) -> None:
        """In a new worker: have the system end it when its play dies, even one that nobody could tell to.

        By SIGTERM, at which Ansible's worker ends what it has started too (prctl(2)).
        """
        if self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
        if os.getppid() != self._play:
            os._exit(1)

    def _queue_task(self, *args: Any, **kwargs: Any) -> None:
        """Start a worker. Raises AnsibleError if that fails: Ansible would wait for its result."""
        pending = self._pending_results
        super()._queue_task(*args, **kwargs)
        if self._pending_results == pending:
            raise AnsibleError(
                "No worker could be started for a task: the system has no process or memory left for it, or "
                f"the play's output can't be written. {_AGAIN}"
            )
        self._begun.append(self._workers[self._cur_worker - 1]._popen)

    def _process_pending_results(self, *args: Any, **kwargs: Any) -> Any:
        """The results so far. Raises AnsibleError if one can never arrive."""
        if not self._results_thread.is_alive():
            raise AnsibleError(
                "The play's output can't be written: its terminal is gone, or its disk is full. No more "
                f"results are read. {_AGAIN}"
            )
        if self._has_lost_worker():
            raise AnsibleError(f"A worker process has died. {_AGAIN}")
        with self._results_lock:
            if self._pending_results and not self._results:
                self._results_lock.wait(LOOK_S)
        return super()._process_pending_results(*args, **kwargs)

    def _has_lost_worker(self) -> bool:
        """Whether any worker was killed, even if another one has taken its place in Ansible's list."""
        self._begun = [worker for worker in self._begun if worker.poll() != 0]
        return any(worker.returncode for worker in self._begun)

    def _end_workers(self) -> None:
        """End the workers whose results nobody will read, with what they have started.

        Ansible asks them once. One that has just begun still has its parent's signal handler, whose failure
        nobody sees, and goes on; Ansible would wait for it before it exits.
        """
        until = time.monotonic() + END_S
        while working := [worker for worker in self._begun if worker.poll() is None]:
            number = signal.SIGTERM if time.monotonic() < until else signal.SIGKILL
            for worker in working:
                try:
                    os.killpg(worker.pid, number)
                except ProcessLookupError:  # it has not got as far as to lead a group
                    os.kill(worker.pid, number)
            time.sleep(LOOK_S)

    def cleanup(self) -> None:
        """End the collection of results without waiting forever for a dead worker's.

        A worker that dies while sending its result keeps the queue locked, or leaves half of the result
        there. After an interrupt it may die during this call. If nobody collects any more, the queue may be
        full. Raises errors of ending the collection.
        """
        if self._pending_results:
            self._end_workers()
        failed: list[BaseException] = []

        def end() -> None:
            try:
                super(StrategyModule, self).cleanup()
            except BaseException as error:  # noqa: BLE001 - raised below, where the play hears of it
                failed.append(error)

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(END_S)
        while ending.is_alive() and self._results_thread.is_alive() and not self._has_lost_worker():
            ending.join(END_S)
        if failed:
            raise failed[0]
