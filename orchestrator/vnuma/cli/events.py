"""Events of a run as JSON lines, for programs that follow it: `vnuma run --events FILE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import TYPE_CHECKING, BinaryIO

from vnuma.cli.screen import say
from vnuma.errors import InputError, VnumaError
from vnuma.words.plain_text import counted

if TYPE_CHECKING:
    from vnuma.engine.notify import Event
    from vnuma.engine.run.progress import Progress, VmProgress
    from vnuma.engine.run.run_outcome import End

Listener = Callable[["Event"], None]


def json_lines(stream: BinaryIO) -> Listener:
    """Writes each event as a line. A failure to write ends the log, not the run."""
    ended = False

    def write(event: Event) -> None:
        nonlocal ended
        if ended:
            return
        try:
            stream.write(json.dumps(event).encode() + b"\n")
            stream.flush()
        except OSError as error:
            ended = True
            say(f"No further events are written ({error.strerror}); the run continues.", sys.stderr)

    return write


def news() -> Callable[[str, str, object], bool]:
    """A function that says whether this `what` of `name` has another state than at its last call."""
    told: dict[tuple[str, str], object] = {}

    def is_new(what: str, name: str, state: object) -> bool:
        known, told[what, name] = told.get((what, name)), state
        return known != state

    return is_new


class EventLog:
    """A run as events: start, end, each ended cell, each step, each wait, each VM that needs a person, each
    VM restored.
    """

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners
        self._is_new = news()
        self._latest: Progress | None = None

    def start(self, progress: Progress) -> None:
        """Before the first change. Problems from an earlier part of the run are not reported again."""
        self._latest = progress
        for vm in progress.vms:
            self._is_new("needs_person", vm.name, vm.lasting)
            self._is_new("not_back", vm.name, vm.restore_words)
        words = f"{counted(progress.total - progress.done, 'cell')} to run on "
        self._write_of_run("started", words + ", ".join(vm.name for vm in progress.vms) + ".")

    def end(self, event: End, error: Exception | None, words: str = "") -> None:
        """How the run ended: `error` decides the exit code."""
        code, fix = 0, None
        if isinstance(error, VnumaError):
            words, code, fix = error.what, error.exit_code, error.fix
        elif error:
            words, code = f"Ended by a bug in vnuma ({type(error).__name__}).", 1
        self._write_of_run(event, words, exit_code=code, next=fix)

    def show(self, progress: Progress) -> None:
        """Write what is new."""
        self._latest = progress
        for vm in progress.vms:
            if vm.lasting and self._is_new("needs_person", vm.name, vm.lasting):
                what, _, fix = (vm.lasting.detail or str(vm.lasting.reason)).partition("\n")
                self._write(progress, vm, "trouble", words=what, next=" ".join(fix.split()) or None)
            if vm.restore_failed and self._is_new("not_back", vm.name, vm.restore_words):
                words = vm.restore_words or f"{vm.name} was not restored."
                self._write(progress, vm, "trouble", words=words, next=None)
            if vm.last and self._is_new("cell", vm.name, (vm.done, vm.last)):
                arm, outcome = vm.last[0]
                self._write(progress, vm, "cell", arm=arm, outcome=outcome)
            if vm.step and self._is_new("step", vm.name, (vm.label, vm.block, vm.step)):
                self._write(progress, vm, "step", arm=vm.label, block=vm.block, step=vm.step)
            if vm.waits_for and self._is_new("waiting", vm.name, vm.waits_for):
                self._write(progress, vm, "waiting", for_=vm.waits_for)
            if vm.restore_words and self._is_new("restored", vm.name, vm.restore_words):
                self._write(progress, vm, "restored", at_baseline=vm.at_baseline, words=vm.restore_words)

    def _write(self, progress: Progress, vm: VmProgress, event: str, **more: object) -> None:
        about = {name.rstrip("_"): value for name, value in more.items()}
        self._tell(progress, event, vm=vm.name, **about, cells_ended=vm.done, cells=vm.total)

    def _write_of_run(self, event: str, words: str, **more: object) -> None:
        progress = self._latest
        if progress is None:
            return
        vms = [
            {"name": vm.name, "at_baseline": vm.at_baseline, "words": vm.restore_words} for vm in progress.vms
        ]
        about = {"ticket": progress.run.ticket, "words": words, **more, "vms": vms}
        self._tell(progress, event, **about, cells_ended=progress.done, cells=progress.total)

    def _tell(self, progress: Progress, event: str, **about: object) -> None:
        from vnuma.engine.notify import event_line

        simulated = progress.run.simulated is not None
        line = event_line(event, progress.run.name, simulated=simulated, **about, left_s=progress.left_s)
        for listener in self._listeners:
            listener(line)


@contextmanager
def following(where: str | None) -> Iterator[list[Listener]]:
    """The writer of events, to a file or for `-` to standard output; empty without one.

    Lines are appended to an existing file. Raises InputError if it cannot be opened.
    """
    if where is None:
        yield []
    elif where == "-":
        yield [json_lines(sys.stdout.buffer)]
    else:
        try:
            # Unbuffered, so that a failed line is not written again when the file is closed.
            file = FileIO(where, "a")
        except OSError as error:
            raise InputError(
                f"Events cannot be written to {where} ({error.strerror}).", fix="Name another file, or -"
            ) from error
        with file:
            yield [json_lines(file)]
