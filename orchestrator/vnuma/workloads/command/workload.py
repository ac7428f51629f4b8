"""`command`: a program that prints a figure, run by Ansible's own connection.

A time limit ends the program with its children, standard input is empty, and what it prints is bounded and
kept with each sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from shlex import join, quote
from uuid import uuid4

from vnuma.domain.vm.linux import LinuxFacts
from vnuma.errors import MachineUnreachable, MeasurementFailed, StudySetupFailed, undo_at_end
from vnuma.workloads.command.settings import OUTPUT_KB, Command, Program, Unreadable, shown
from vnuma.workloads.interface import Bench, Document, Obstacle, Reading, SystemUnderTest, Workload
from vnuma.workloads.shell import BOOT, Shell

_SCOPE = "command"
_GRACE_S = 5
"""Between the polite signal and the one that cannot be ignored."""

_LONGER_S = 60
"""The connection may take this much longer than the program."""

_ERRORS_BYTES = 2000
_TIMED_OUT = (124, 137)
"""Exit codes of timeout(1): the limit passed, and the program ignored the polite signal."""

_SCRIPT = """
sweep() {
  for at in $(grep -lzxF VNUMA_PROGRAM=NAME /proc/[0-9]*/environ 2>/dev/null); do
    at=${at%/environ}; kill -KILL "${at#/proc/}"
  done
}
boot=BOOT
sweep
echo "@@TOKEN begin $(cat $boot) $(cat /proc/uptime)"
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
{ {
  timeout -k GRACE LIMIT env VNUMA_PROGRAM=NAME WORDS </dev/null 2>&1 >&3
  status=$?; echo $status >"$t/status"
  if [ $status = 124 ] || [ $status = 137 ]; then sweep; fi
} | tail -c ERRORS >"$t/errors"; } 3>&1 | { head -c MOST; cat >/dev/null; }
echo
echo "@@TOKEN errors"; cat "$t/errors"
echo
echo "@@TOKEN end $(cat "$t/status") $(cat $boot) $(cat /proc/uptime)"
"""
"""Processes are found by a variable of their environment, which children inherit: those of a program whose
time is over, and those that a killed play has left.
"""

_OUTPUT = re.compile(
    r"@@(?P<token>\w+) begin (?P<boot>\S+) (?P<up>[\d.]+) [\d.]+\n(?P<stdout>.*)\n"
    r"@@(?P=token) errors\n(?P<stderr>.*)\n"
    r"@@(?P=token) end (?P<status>\d+) (?P<last_boot>\S+) (?P<down>[\d.]+) [\d.]+\n",
    re.DOTALL,
)


@dataclass(frozen=True)
class Ran:
    """How a program ended: what it printed, its exit code, and the boots at its begin and end."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    boots: tuple[str, str]


def posix_script(program: Program, limit_s: float, token: str, name: str) -> str:
    """The script that runs a program within bounds, after ending what still runs under that name.

    `ran` parses its output by the token.
    """
    words = join(program) if isinstance(program, tuple) else f"/bin/sh -c {quote(program)}"
    values = {
        "TOKEN": token,
        "BOOT": BOOT,
        "NAME": name,
        "GRACE": str(_GRACE_S),
        "LIMIT": str(math.ceil(limit_s)),
        "ERRORS": str(_ERRORS_BYTES),
        "MOST": str(OUTPUT_KB * 1024 + 1),
        "WORDS": words,
    }
    return re.sub("|".join(values), lambda found: values[found[0]], _SCRIPT)


def ran(printed: str, token: str) -> Ran | None:
    """How the program of that token ended; None for an output that is cut."""
    found = _OUTPUT.search(printed)
    if found is None or found["token"] != token:
        return None
    seconds = float(found["down"]) - float(found["up"])
    boots = (found["boot"], found["last_boot"])
    return Ran(int(found["status"]), _text(found["stdout"]), _text(found["stderr"]), seconds, boots)


def _text(printed: str) -> str:
    """What every store can keep: no NUL, and no bytes that are not UTF-8."""
    return printed.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def figure_of(settings: Command, done: Ran, boot: str) -> float:
    """The figure of an iteration on that boot. Raises Unreadable with why it has none."""
    _require_end(done, boot, settings.timeout_s, settings.exit_codes)
    return settings.figure.read(done.stdout)


def _require_end(done: Ran, boot: str, limit_s: float, exit_codes: Iterable[int]) -> None:
    if set(done.boots) != {boot}:
        raise Unreadable("its machine was booted meanwhile")
    if done.status in _TIMED_OUT and done.seconds >= limit_s:
        raise Unreadable(f"it ran longer than {limit_s:g} s and was ended with its children")
    if done.status not in exit_codes:
        raise Unreadable(f"it ended with exit code {done.status}: {_last_words(done)}")
    if len(done.stdout.encode()) > OUTPUT_KB * 1024:
        raise Unreadable(f"it printed more than {OUTPUT_KB} KiB")


def _last_words(done: Ran) -> str:
    lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


class CommandWorkload(Workload):
    """The workload for the engine."""

    settings = Command

    def guest_obstacles(self, settings: Command, guest: LinuxFacts) -> Iterator[Obstacle]:
        """Files and programs that are missing where it runs."""
        for name in guest.missing:
            later = settings.may_install(name)
            yield Obstacle(
                f"{guest.hostname} has no {name}{', unless study_setup installs it' if later else ''}.",
                "Install it there; vnuma copies nothing.",
                blocks=not later,
            )

    def prepare(self, system: SystemUnderTest) -> Document:
        """Run the study's own preparation, once in each lease of the VM."""
        done = {"lease": system.lease}
        if not system.settings.study_setup or system.remembered(_SCOPE) == done:
            return {}
        _run_all(system, system.settings.study_setup, "study_setup")
        system.remember(_SCOPE, done)
        return {"study_setup": [shown(one) for one in system.settings.study_setup]}

    def remove(self, shell: Shell, settings: Command) -> None:
        """Undo the study's preparation."""
        for program in settings.study_teardown:
            _completed(shell, settings, program, "study_teardown")

    @contextmanager
    def bench(self, system: SystemUnderTest) -> Iterator[Bench]:
        """A boot: set up, measured, and torn down whatever happens."""
        settings: Command = system.settings
        with undo_at_end(lambda: _run_all(system, settings.teardown, "teardown")):
            _run_all(system, settings.setup, "setup")
            if settings.client is None:
                yield _Programs(system)
                return
            guest = system.guest_boot()
            yield _Programs(system)
            if system.guest_boot() != guest:
                raise MeasurementFailed(f"{system.vm} was booted while {settings.client} measured it.")


class _Programs:
    """The measured program on one boot."""

    def __init__(self, system: SystemUnderTest) -> None:
        self._system, self._boot = system, ""

    def run(self, size: int, form: str) -> Reading:
        """Run it once. Raises MeasurementFailed, with its output if there is one."""
        settings: Command = self._system.settings
        program = settings.filled(settings.run, size, form)
        name = sha256(self._system.vm.encode()).hexdigest()[:16]
        done = _run(self._system.shell, program, settings.timeout_s, name)
        self._boot = self._boot or done.boots[0]
        stdout, stderr = self._system.masked(done.stdout), self._system.masked(done.stderr)
        kept = {"stdout": stdout, "stderr": stderr, "exit_code": done.status, "program": shown(program)}
        try:
            value = figure_of(
                settings, Ran(done.status, stdout, stderr, done.seconds, done.boots), self._boot
            )
        except Unreadable as why:
            failed = MeasurementFailed(
                f"{self._system.vm}: {shown(program)}: {why}.",
                fix="Run it there by hand. Its output is in the results' raw data.",
            )
            failed.execution = kept
            raise failed from None
        return Reading(elapsed_ms=done.seconds * 1000, value=value, execution=kept)


def _run_all(system: SystemUnderTest, programs: Iterable[Program], what: str) -> None:
    for program in programs:
        system.say(what.replace("_", " "))
        _completed(system.shell, system.settings, program, what)


def _completed(shell: Shell, settings: Command, program: Program, what: str) -> None:
    """Run one of the programs around the measured one.

    Raises StudySetupFailed or MeasurementFailed unless it ends with 0.
    """
    filled = settings.filled(program)
    done = _run(shell, filled, settings.timeout_s, uuid4().hex)
    try:
        _require_end(done, done.boots[0], settings.timeout_s, (0,))
    except Unreadable as why:
        kind = StudySetupFailed if what == "study_setup" else MeasurementFailed
        raise kind(f"workload.{what}: {shown(filled)}: {why}.", fix="Run it there by hand.") from None


def _run(shell: Shell, program: Program, limit_s: float, name: str) -> Ran:
    token = uuid4().hex
    try:
        said = shell.run(posix_script(program, limit_s, token, name), limit_s + _LONGER_S)
    except MachineUnreachable as error:
        raise MeasurementFailed(
            f"The connection broke while {shown(program)} ran: {error.what}",
            fix="Look whether its machine was booted meanwhile.",
        ) from error
    done = ran(said.stdout, token)
    if done is None:
        raise MeasurementFailed(
            f"{shown(program)} could not be run to its end: {said.last_words}.",
            fix="It needs Linux with timeout, head and tail (coreutils).",
        )
    return done


WORKLOAD = CommandWorkload()
