"""A benchmark callback: start and end of each of a play's tasks, as lines of JSON."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: task_times
type: aggregate
short_description: Writes times of tasks to the file that ANSIBLE_BENCH_TASK_TIMES names
description: For the benchmark only.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible-core ships no types
    """Appends one line for each start of a task and for each result."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_times"
    CALLBACK_NEEDS_ENABLED = True

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """A worker is about to be started."""
        self._write("start", task)

    def v2_runner_on_ok(self, result: Any) -> None:
        """Its result has arrived."""
        self._write("end", result.task)

    def _write(self, event: str, task: Any) -> None:
        line = {"event": event, "task": task.get_name(), "action": task.action, "at": time.time()}
        with Path(os.environ["ANSIBLE_BENCH_TASK_TIMES"]).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
