"""The strategy of vnuma's plays: what a worker's death may not do to the play."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import os, signal, sys, threading, types
from ansible.plugins.loader import init_plugin_loader, strategy_loader
init_plugin_loader()
from ansible.executor.task_queue_manager import FinalQueue
from ansible.utils.multiprocessing import context

kind = strategy_loader.get("vnuma.vnuma.watched", class_only=True)
sys.modules[kind.__module__].END_S = 0.2
results, holding = FinalQueue(), context.Event()

def die_while_sending():
    results._wlock.acquire()
    holding.set()
    signal.pause()

worker = context.Process(target=die_while_sending)
worker.start()
holding.wait()

def dead():
    strategy._begun[0].returncode = worker.exitcode
    worker.kill()
    worker.join()
    return strategy._begun[0].returncode

if sys.argv[1] == "before":
    worker.kill()
    worker.join()
collecting = threading.Thread(target=results.get, daemon=True)
collecting.start()
strategy = object.__new__(kind)
strategy._pending_results = 0
strategy._begun = [types.SimpleNamespace(poll=dead, returncode=None)]
strategy._active_connections, strategy._final_q, strategy._results_thread = {}, results, collecting
strategy.cleanup()
print("ended")
"""
"""A process of its own, since Ansible's loader changes how Python imports."""


@pytest.mark.parametrize("dies", ["before", "meanwhile"])
def test_a_worker_that_is_killed_as_it_sends_its_result_ends_the_play(dies: str) -> None:
    """It keeps the queue of results locked forever: neither the play nor the run waits for that.

    An interrupted play starts to end before its workers have died.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, dies], capture_output=True, text=True, check=False, timeout=120
    )

    assert done.stdout == "ended\n", done.stderr


def test_what_goes_wrong_as_the_play_ends_is_raised() -> None:
    """It happens in a separate thread; the play gets the error nevertheless."""
    program = _PROGRAM.replace("results, collecting\n", "None, collecting\n")

    done = subprocess.run(
        [sys.executable, "-c", program, "before"], capture_output=True, text=True, check=False, timeout=120
    )

    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "AttributeError" in done.stderr
