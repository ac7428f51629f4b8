"""Events of a run as JSON lines, for programs that follow it: `vnuma run --events FILE`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from typing import TYPE_CHECKING, BinaryIO

from vnuma.cli.screen import say
from vnuma.errors import InputError

if TYPE_CHECKING:
    from vnuma.engine.run.progress import Progress, VmProgress
    from vnuma.engine.run.supervise import Watch


class EventLog:
    """One line for each cell that ended, each step, each wait and each VM that was put back.

    A line that cannot be written ends the log and never the run.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._seen: dict[tuple[str, str], object] = {}
        self._ended = False

    def show(self, progress: Progress) -> None:
        """Write what is new, as long as it can be written."""
        if self._ended:
            return
        try:
            self._show(progress)
        except OSError as error:
            self._ended = True
            say(f"No more events are written ({error.strerror}); the run goes on.", sys.stderr)

    def _show(self, progress: Progress) -> None:
        for vm in progress.vms:
            if vm.last and self._is_new(vm, "cell", (vm.ended, vm.last)):
                arm, outcome = vm.last[0]
                self._write(progress, vm, "cell", arm=arm, outcome=outcome)
            if vm.step and self._is_new(vm, "step", (vm.label, vm.block, vm.step)):
                self._write(progress, vm, "step", arm=vm.label, block=vm.block, step=vm.step)
            if vm.waits_for and self._is_new(vm, "waiting", vm.waits_for):
                self._write(progress, vm, "waiting", for_=vm.waits_for)
            if vm.restore_words and self._is_new(vm, "put_back", vm.restore_words):
                self._write(progress, vm, "put_back", at_baseline=vm.at_baseline, words=vm.restore_words)

    def _is_new(self, vm: VmProgress, event: str, state: object) -> bool:
        if self._seen.get((vm.name, event)) == state:
            return False
        self._seen[vm.name, event] = state
        return True

    def _write(self, progress: Progress, vm: VmProgress, event: str, **more: object) -> None:
        line = {
            "schema": "vnuma/event/1",
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "run": progress.run.name,
            "simulated": progress.run.simulated is not None,
            "vm": vm.name,
            "event": event,
            **{name.rstrip("_"): value for name, value in more.items()},
            "cells_ended": vm.ended,
            "cells": vm.total,
            "left_s": progress.left_s,
        }
        self._stream.write(json.dumps(line).encode() + b"\n")
        self._stream.flush()


@contextmanager
def following(where: str | None) -> Iterator[Watch | None]:
    """An event log's `show` on a file, or on standard output for `-`; None where none is wanted.

    Lines are added to a file that is there already. Raises InputError where it cannot be opened.
    """
    if where is None:
        yield None
    elif where == "-":
        yield EventLog(sys.stdout.buffer).show
    else:
        try:
            # Unbuffered: a line that could not be written is not tried again when the file is closed.
            file = FileIO(where, "a")
        except OSError as error:
            raise InputError(
                f"Events cannot be written to {where} ({error.strerror}).", fix="Name another file, or -"
            ) from error
        with file:
            yield EventLog(file).show
