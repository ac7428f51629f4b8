"""Run functions in a separate process, so that input that crashes it fails only that call.

Readers and renderers not written in Python may abort the process instead of raising, and do not limit memory.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows, and a page of a browser
    resource = None  # type: ignore[assignment]

_MEGABYTE = 1024 * 1024


class IsolationError(Exception):
    """The call gave no result; the message says why, in a few words."""


class IsolatedModule:
    """The functions of one module, called in a process that lives until it fails or this one ends.

    Arguments and results must be JSON values. Each call may take `seconds`.
    """

    def __init__(self, module: str, *, seconds: float) -> None:
        self._module, self._seconds = module, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def call(self, function: str, *arguments: Any) -> Any:
        """The function's result. Raises IsolationError if it raises, dies, or exceeds its time."""
        if sys.platform == "emscripten":  # a page of a browser has no processes, and is isolated itself
            return _result(_answer(getattr(import_module(self._module), function), list(arguments)))
        with self._lock:
            process, passed = self._running(), threading.Event()

            def kill() -> None:
                passed.set()
                process.kill()

            late = threading.Timer(self._seconds, kill)
            late.daemon = True
            late.start()
            try:
                line = _exchange(process, json.dumps([function, arguments]).encode() + b"\n")
            except BaseException:
                self._end()  # its answer would be taken for the next call's
                raise
            finally:
                late.cancel()
            if not line.endswith(b"\n"):
                raise IsolationError(self._why(self._end(), passed=passed.is_set()))
        return _result(json.loads(line))

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", "from vnuma.isolation import serve; serve()", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            atexit.register(self.close)
        return self._process

    def _end(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        atexit.unregister(self.close)
        process.kill()
        with suppress(OSError):  # unsent data for a process that has ended
            process.communicate()
        return process.wait()

    def _why(self, code: int, *, passed: bool) -> str:
        if passed:
            return f"it did not end within {self._seconds:g} s"
        if code == -signal.SIGABRT:
            return "it needs too much memory"
        if resource and code == -signal.SIGXCPU:
            return "it took too much processor time"
        return f"its process ended with status {code}"


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    """The answer to a request; without a line end if the process died before it was complete."""
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(request)
        process.stdin.flush()
        return process.stdout.readline()
    except OSError:  # it has ended
        return b""


def serve() -> None:
    """Answer calls until standard input ends. A function's output is discarded."""
    if resource:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    functions = import_module(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        name, arguments = json.loads(line)
        answers.write(json.dumps(_answer(getattr(functions, name), arguments)).encode() + b"\n")
        answers.flush()


def bound(*, memory_mb: float, cpu_seconds: float) -> None:
    """Limit how much more memory and CPU this process may use, before it is killed. For the called
    functions.
    """
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + cpu_seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    with suppress(OSError):  # a system without /proc does not enforce RLIMIT_DATA either
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        most = pages * resource.getpagesize() + round(memory_mb * _MEGABYTE)
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _result(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise IsolationError(answer["error"])
    return answer["result"]


def _answer(function: Callable[..., Any], arguments: list[Any]) -> dict[str, Any]:
    try:
        return {"result": function(*arguments)}
    except MemoryError:
        return {"error": "it took too much memory"}
    except BaseException as error:  # noqa: BLE001 - a panic of a library is no Exception; the caller is told
        return {"error": f"{type(error).__name__}: {error}"[:500]}
