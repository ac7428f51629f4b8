"""`command`: a program that prints a figure, run by Ansible's own connection.

A time limit ends the program with its children, standard input is empty, and what it prints is bounded and
kept with each sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from shlex import join, quote
from uuid import uuid4

from vnuma.domain.vm.linux import LinuxFacts
from vnuma.errors import (
    MachineUnreachable,
    MeasurementFailed,
    NoFigure,
    StoreError,
    StudySetupFailed,
    undo_at_end,
)
from vnuma.workloads.command.settings import OUTPUT_KB, Command, Program, Unreadable, shown
from vnuma.workloads.interface import (
    Bench,
    Document,
    Obstacle,
    Reached,
    Reading,
    SystemUnderTest,
    Workload,
)
from vnuma.workloads.shell import BOOT, Output

_SCOPE = "command"
_GRACE_S = 5
"""Between the polite signal and the one that cannot be ignored."""

_LONGER_S = 60
"""The connection may take this much longer than the program."""

_ERRORS_BYTES = 2000
_TIMED_OUT = (124, 137)
"""Exit codes of timeout(1): the limit passed, and the program ignored the polite signal."""

_WAITS = 50
"""Tenths of a second that killed processes are waited for."""

_SCRIPT = r"""
marked() { grep -lzxF "$1" /proc/[0-9]*/environ 2>/dev/null; }
tree() {
  of=$(marked "$1")
  if [ -n "$of" ]; then
    { echo "$of"; grep -sE '^(PPid|NSpgid|NSsid):' /proc/[0-9]*/status; } | awk -F '[^0-9]+' '
      $3 == "" { all[$2]; next }
      { pid[NR] = $2; above[NR] = $3 }
      END {
        do {
          more = 0
          for (n in pid) if (above[n] in all && !(pid[n] in all)) { all[pid[n]]; more = 1 }
        } while (more)
        for (one in all) print one
      }'
  fi
}
sweep() {
  tries=0
  while found=$(tree "VNUMA_PROGRAM=$1"); [ -n "$found" ]; do
    if [ $tries = WAITS ]; then echo $found cannot be ended; exit 4; fi
    kill -STOP $found 2>/dev/null
    kill -KILL $found $(tree "VNUMA_PROGRAM=$1") 2>/dev/null
    tries=$((tries + 1)); sleep 0.1
  done
}
limit() {
  timeout LIMIT cat || {
    >"$t/late"
    found=$(tree VNUMA_PROGRAM=NAME.PART)
    kill -TERM $found 2>/dev/null
    timeout GRACE cat
    (sweep NAME.PART) || >"$t/stuck"
    kill -KILL $found 2>/dev/null
  }
}
command -v awk >/dev/null || { echo "awk is missing"; exit 6; }
boot=BOOT
if [ -n 'PROVEN' ] && [ "$(cat $boot)" != 'PROVEN' ]; then
  echo "its machine was booted meanwhile, or is another one"; exit 5
fi
for at in $(marked VNUMA_RUNNER=NAME); do
  sweep "$(tr '\0' '\n' <"$at" | sed -n 's/^VNUMA_PROGRAM=//p')"
done
sweep NAME.run
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
echo "@@TOKEN begin $(cat $boot) $(cat /proc/uptime)"
{ { {
  env VNUMA_RUNNER=NAME VNUMA_PROGRAM=NAME.PART timeout -k AFTER LAST env VNUMA_RUNNER= WORDS \
    </dev/null 2>&4 >&3 3>&- 4>&-
  status=$?; ended="$(cat $boot) $(cat /proc/uptime)"; left=0
  if [ -e "$t/late" ]; then
    status=124
  elif [ PART = run ] && [ -n "$(marked VNUMA_PROGRAM=NAME.run)" ]; then
    sleep 1
    if [ -n "$(marked VNUMA_PROGRAM=NAME.run)" ]; then left=1; fi
    sweep NAME.run
  elif [ $status = 124 ] || [ $status = 137 ]; then
    sweep NAME.PART
  fi
  echo "$status $left $ended" >"$t/status"
} | limit; } 4>&1 | tail -c ERRORS >"$t/errors"; } 3>&1 | { head -c MOST; cat >/dev/null; }
echo
echo "@@TOKEN errors"; cat "$t/errors"
echo
[ -e "$t/stuck" ] || echo "@@TOKEN end $(cat "$t/status")"
"""
"""Two variables of the environment mark processes. VNUMA_PROGRAM is inherited by children; VNUMA_RUNNER is
set only for `timeout`, so that a program at work is known from a server that a finished one has started.

su and sudo reset the environment: `tree` adds descendants, and members of their groups and sessions. It looks
before the first signal, which takes orphans their parents; hence `limit`, and `timeout` only if that fails.
"""

_OUTPUT = re.compile(
    r"@@(?P<token>\w+) begin (?P<boot>\S+) (?P<up>[\d.]+) [\d.]+\n(?P<stdout>.*)\n"
    r"@@(?P=token) errors\n(?P<stderr>.*)\n"
    r"@@(?P=token) end (?P<status>\d+) (?P<left>[01]) (?P<last_boot>\S+) (?P<down>[\d.]+) [\d.]+\n",
    re.DOTALL,
)


@dataclass(frozen=True)
class Ran(Output):
    """How a program ended, and the boots at its begin and end."""

    seconds: float
    boots: tuple[str, str]
    left: bool = False
    """Whether processes of it were at work after its end."""


MEASURED = "run"
"""The part of a study that may leave no process."""


def posix_script(
    program: Program, limit_s: float, token: str, name: str, part: str = MEASURED, boot: str = ""
) -> str:
    """The script that runs a program within bounds, after ending programs still at work under that name.

    `part` names the program among those of that name. It does nothing on another boot than
    `boot`, if given. `ran` parses the script's output by the token.
    """
    words = join(program) if isinstance(program, tuple) else f"/bin/sh -c {quote(program)}"
    values = {
        "TOKEN": token,
        "BOOT": BOOT,
        "NAME": name,
        "PART": part,
        "PROVEN": boot,
        "WAITS": str(_WAITS),
        "GRACE": str(_GRACE_S),
        "LIMIT": str(math.ceil(limit_s)),
        "LAST": str(math.ceil(limit_s) + 2 * _GRACE_S),
        "AFTER": str(2 * _GRACE_S),
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
    stdout, stderr, left = _text(found["stdout"]), _text(found["stderr"]), found["left"] == "1"
    return Ran(int(found["status"]), stdout, stderr, seconds, boots, left)


def _text(printed: str) -> str:
    """What every store can keep: no NUL, and no bytes that are not UTF-8."""
    return printed.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


class BootedMeanwhile(Unreadable):
    """A program's machine was booted while it ran: another boot may give a figure."""


def figure_of(settings: Command, done: Ran, boot: str, masked: Callable[[str], str] = str) -> float:
    """The figure of an iteration on that boot, above 0. Raises Unreadable with why it has none."""
    _require_end(done, boot, settings.timeout_s, settings.exit_codes, masked)
    if done.left:
        raise Unreadable("it left processes, which were ended")
    figure = settings.figure.read(masked(done.stdout))
    if figure <= 0:
        raise Unreadable(f"its figure is {figure:g}; figures are compared as ratios, so it must be above 0")
    if figure != _figure(settings, done.stdout):
        raise Unreadable("its figure contains a secret of the run")
    return figure


def _figure(settings: Command, output: str) -> float | None:
    with suppress(Unreadable):  # its reason could quote a secret
        return settings.figure.read(output)
    return None


def _require_end(
    done: Ran, boot: str, limit_s: float, exit_codes: Iterable[int], masked: Callable[[str], str]
) -> None:
    if set(done.boots) != {boot}:
        raise BootedMeanwhile("its machine was booted meanwhile")
    if done.status in _TIMED_OUT and done.seconds >= limit_s:
        raise Unreadable(f"it ran longer than {limit_s:g} s and was ended with its children")
    if done.status not in exit_codes:
        raise Unreadable(f"it ended with exit code {done.status}: {_last_words(done, masked)}")
    if len(done.stdout.encode()) > OUTPUT_KB * 1024:
        raise Unreadable(f"it printed more than {OUTPUT_KB} KiB")


def _last_words(done: Output, masked: Callable[[str], str]) -> str:
    return Output(done.status, masked(done.stdout), masked(done.stderr)).last_words


def _guest_obstacles(settings: Command, guest: LinuxFacts) -> Iterator[Obstacle]:
    """Files and programs that are missing where it runs."""
    for name in guest.missing:
        later = settings.may_install(name)
        yield Obstacle(
            f"{guest.hostname} has no {name}{', unless a setup installs it' if later else ''}.",
            "Install it there; vnuma copies nothing.",
            blocks=not later,
        )


def _prepare(system: SystemUnderTest) -> Document:
    """Run the study's own preparation, once in each lease of the VM."""
    done = {"lease": system.lease, "boot": system.boot if system.settings.client else ""}
    if not system.settings.study_setup or system.remembered(_SCOPE) == done:
        return {}
    _set_up(system, system.settings.study_setup, "study_setup")
    system.remember(_SCOPE, done)
    return {"study_setup": [shown(one) for one in system.settings.study_setup]}


def _remove(left: Reached, settings: Command) -> None:
    """End what is still at work, and undo the study's preparation."""
    _undo(left, settings, settings.study_teardown or (("true",),), "study_teardown")


@contextmanager
def _bench(system: SystemUnderTest) -> Iterator[Bench]:
    """A boot: set up, measured, and torn down whatever happens."""
    settings: Command = system.settings
    with undo_at_end(lambda: _tear_down(system, settings)):
        _set_up(system, settings.setup, "setup")
        yield partial(_measured, system)
        if settings.client and system.guest_boot() != system.proven_guest_boot:
            raise MeasurementFailed(f"{system.vm} was restarted while {settings.client} measured it.")


def _measured(system: SystemUnderTest, size: int, form: str) -> Reading:
    """Run the measured program once. Raises MeasurementFailed, with its output if there is one."""
    settings: Command = system.settings
    program = settings.filled(settings.run, size, form)
    done = _run(system, program, settings.timeout_s, MEASURED)
    kept = {
        "stdout": system.masked(done.stdout),
        "stderr": system.masked(done.stderr),
        "exit_code": done.status,
        "program": system.masked(shown(program)),
    }
    try:
        value = figure_of(settings, done, system.boot, system.masked)
    except Unreadable as why:
        last = "" if done.status else f" It printed last: {_last_words(done, system.masked)}"
        kind = MeasurementFailed if isinstance(why, BootedMeanwhile) else NoFigure
        failed = kind(
            f"{settings.client or system.vm}: {kept['program']}: {why}.{last}",
            fix="Run it there by hand; its output: vnuma results latest --format csv --table samples. "
            "If the study is wrong, correct it and start a new run: a resumed one keeps the study.",
        )
        failed.execution = kept
        raise failed from None
    return Reading(elapsed_ms=done.seconds * 1000, value=value, execution=kept)


def _set_up(system: SystemUnderTest, programs: Iterable[Program], what: str) -> None:
    for program in programs:
        system.say(what.replace("_", " "))
        _completed(system, system.settings, program, what)


def _tear_down(system: SystemUnderTest, settings: Command) -> None:
    """The boot's teardown. Another process's lease ends it; a store that is away does not."""
    with suppress(StoreError):
        system.say("teardown")
    _undo(system, settings, settings.teardown, "teardown")


def _undo(where: Reached, settings: Command, programs: Iterable[Program], what: str) -> None:
    """Run all programs. Raises the first one's MeasurementFailed, which names the others that failed."""
    failed: list[MeasurementFailed] = []
    for program in programs:
        try:
            _completed(where, settings, program, what)
        except MeasurementFailed as error:
            failed.append(error)
    for later in failed[1:]:
        failed[0].also(later)
    if failed:
        raise failed[0]


def _completed(where: Reached, settings: Command, program: Program, what: str) -> None:
    """Run one of the programs around the measured one.

    Raises StudySetupFailed or MeasurementFailed unless it ends with 0.
    """
    filled = settings.filled(program)
    noted = program in (*settings.study_setup, *settings.study_teardown)
    place = f"{what} on {settings.client}" if settings.client else what
    if noted:
        where.note(f"{place}: {_masked(where, filled)}")
    done = _run(where, filled, settings.timeout_s, uuid4().hex)
    if noted:
        where.note(f"{place} ended with exit code {done.status}")
    try:
        _require_end(done, done.boots[0], settings.timeout_s, (0,), where.masked)
    except Unreadable as why:
        kind = StudySetupFailed if what == "study_setup" else MeasurementFailed
        raise kind(
            f"workload.{place}: {where.masked(shown(filled))}: {why}.", fix="Run it there by hand."
        ) from None


def _masked(where: Reached, program: Program) -> str:
    """The whole program without secrets; masked also before quoting, which would change them."""
    return where.masked(program if isinstance(program, str) else join(map(where.masked, program)))


def _run(where: Reached, program: Program, limit_s: float, part: str) -> Ran:
    """Run a program. One name for all programs of a VM ends what a killed play has left of them."""
    token, name = uuid4().hex, sha256(where.vm_key.encode()).hexdigest()[:16]
    try:
        said = where.shell(posix_script(program, limit_s, token, name, part, where.boot), limit_s + _LONGER_S)
    except MachineUnreachable as error:
        raise MeasurementFailed(
            f"The connection broke while {where.masked(shown(program))} ran: {error.what}",
            fix="Look whether its machine was booted meanwhile.",
        ) from error
    done = ran(said.stdout, token)
    if done is None:
        raise MeasurementFailed(
            f"{where.masked(shown(program))} could not be run to its end: {_last_words(said, where.masked)}.",
            fix="It needs Linux with awk, grep, timeout, head and tail (GNU).",
        )
    return done


WORKLOAD = Workload(
    settings=Command, guest_obstacles=_guest_obstacles, prepare=_prepare, remove=_remove, bench=_bench
)
