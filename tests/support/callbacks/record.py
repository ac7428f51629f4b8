"""A callback for tests: every task result of a play as a line of JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record
type: aggregate
short_description: Writes results to the file that VNUMA_TEST_RECORD names
description: For tests only.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible-core ships no types
    """Appends one line for each result."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task that went through."""
        self._write("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task that failed, whether or not a rescue follows."""
        self._write("failed", result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        """A task that was skipped."""
        self._write("skipped", result)

    def _write(self, status: str, result: Any) -> None:
        line = {"status": status, "action": result.task.action, "host": result.host.name, **_result(result)}
        with Path(os.environ["VNUMA_TEST_RECORD"]).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, default=str) + "\n")


def _result(result: Any) -> dict[str, Any]:
    return {"result": dict(result.result)}
