"""Progress of a run on the screen: a live block on a terminal, one line per event elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.text import Text

from vnuma.cli.events import news
from vnuma.cli.screen import MANNER, USUAL, aligned, clock_time, console, folded, painted, sign, width
from vnuma.engine.lease.vcenter_retry import RESTORING
from vnuma.engine.run.oversight import Watch
from vnuma.engine.run.progress import Progress, VmProgress
from vnuma.store.rows import RunState
from vnuma.words.plain_text import counted, duration, escaped
from vnuma.words.provenance import banner

HEARTBEAT_S = 600.0
# Most columns for a step before a table of VMs becomes two lines each.
_STEP = 32


@contextmanager
def watching() -> Iterator[Watch]:
    """A function that shows progress on standard error while the context is open."""
    if MANNER.quiet:
        yield lambda _: None
    elif not sys.stderr.isatty():
        yield LineLog().show
    else:
        with Live(console=console(sys.stderr), auto_refresh=False, transient=True) as live:
            yield _LiveBlock(live).show


class _LiveBlock:
    def __init__(self, live: Live) -> None:
        self._live = live
        self._drawn: list[str] = []

    def show(self, progress: Progress) -> None:
        columns = width(sys.stderr) or USUAL
        lines = block_lines(progress, columns)
        if max(map(len, self._drawn), default=0) > columns:
            self._take_away_reflowed(columns)
        self._drawn = lines
        text = painted(escaped("\n".join(lines)), sys.stderr)
        self._live.update(Text.from_ansi(text), refresh=True)  # not markup: [####..]

    def _take_away_reflowed(self, columns: int) -> None:
        """Clear the extra rows that a terminal makes of drawn lines when it becomes narrower."""
        self._live.stop()
        more = sum((max(len(line), 1) - 1) // columns for line in self._drawn)
        sys.stderr.write(f"\x1b[{more}A\x1b[J")
        self._live.update("")
        self._live.start()


class LineLog:
    """One timestamped line per ended cell, and a heartbeat that distinguishes a quiet run from a dead one."""

    def __init__(self) -> None:
        self._is_new = news()
        self._spoke = time.monotonic()

    def show(self, progress: Progress) -> None:
        if self._is_new("stop", "", bool(progress.run.stop_requested)) and progress.run.stop_requested:
            self._print(stopping_words(progress))
        for site in progress.sites:
            if self._is_new("site", site.name, site.words):
                self._print(f"site={site.name} {site.words or 'is seen again'}")
        for vm in progress.vms:
            if self._is_new("waiting", vm.name, vm.waits_for) and vm.waits_for:
                self._print(f"waiting vm={vm.name}: {vm.waits_for}")
            back = vm.step_words if _is_restoring(vm) else None
            if self._is_new("back", vm.name, back) and back:
                self._print(f"{RESTORING} vm={vm.name}{back.removeprefix(RESTORING)}")
            if self._is_new("step", vm.name, vm.step) and vm.step and MANNER.verbose:
                self._print(f"step vm={vm.name} arm={vm.label or '-'} {vm.step_words}")
            if self._is_new("cell", vm.name, (vm.done, vm.last)) and vm.last:
                label, outcome = vm.last[0]
                left = f" left={duration(progress.left_s)}" if progress.left_s is not None else ""
                told = (vm.note_detail or "").partition("\n")[0] if outcome != "valid" else ""
                why = f": {told}" if told else ""
                self._print(f"cell {vm.done}/{vm.total} vm={vm.name} arm={label} {outcome}{left}{why}")
        if time.monotonic() - self._spoke > HEARTBEAT_S:
            busy = "; ".join(
                f"vm={vm.name} arm={vm.label or '-'} step={vm.step_words}"
                for vm in progress.vms
                if vm.step or vm.waits_for
            )
            self._print(f"alive {progress.done}/{progress.total} {busy}")

    def _print(self, text: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        sys.stderr.write(f"{stamp} {escaped(text)}\n")
        sys.stderr.flush()
        self._spoke = time.monotonic()


def block_lines(progress: Progress, columns: int = USUAL) -> list[str]:
    """The live block: one VM in detail; several as a table, or two lines each if the table is too wide."""
    run = progress.run
    head = [banner(run.simulated)] if run.simulated else []
    one = len(progress.vms) == 1
    lines = _one(progress, progress.vms[0], columns) if one else _several(progress, columns)
    lines += [f"  {site.name}: {site.words}" for site in progress.sites if site.words]
    return folded("\n".join([*head, *lines, *_stopping_lines(progress)]), columns).split("\n")


def detail_lines(progress: Progress, columns: int = USUAL) -> list[str]:
    """The current state of a run, VM by VM, for `vnuma status RUN`."""
    run = progress.run
    lines = [banner(run.simulated)] if run.simulated else []
    for vm in progress.vms:
        lines += _one(progress, vm, columns)
        if vm.since and vm.step:
            lines.append(f"  since {vm.since.astimezone():%a %H:%M:%S}")
        if vm.repeated:
            lines.append(f"  repeated {counted(vm.repeated, 'attempt')} repeated")
        if vm.ended_by:
            lines.append(f"  ended by {vm.ended_by}")
        lines += [f"  left behind {words}" for words in vm.databases_left]
        if vm.restore_words:
            lines += [f"  restored {line.strip()}" for line in vm.restore_words.splitlines()]
    return folded("\n".join(lines), columns).split("\n")


def _several(progress: Progress, columns: int) -> list[str]:
    counts = f"{counted(len(progress.vms), 'VM')}  {progress.done} of {progress.total}"
    ends = f", ends about {clock_time(progress.left_s)}" if progress.left_s is not None else ""
    first = f"{progress.run.name}  {counts}  {_left(progress)}{ends}"
    cells = [
        (vm.name, vm.host, f"{vm.done}/{vm.total}", f"{vm.label or ''} {vm.step_words}".strip())
        for vm in progress.vms
    ]
    bars = [
        (*row[:2], f"{row[2]} {_bar(vm, 10)}", row[3]) for vm, row in zip(progress.vms, cells, strict=True)
    ]
    rows = [("VM", "host", "cells", "step"), *bars]
    if sum(max(len(row[column]) for row in rows) + 2 for column in range(3)) + _STEP <= columns:
        return [first, *aligned(rows, columns)]
    return [first, *(line for *about, step in cells for line in ("  ".join(about), f"  {step}"))]


def _bar(vm: VmProgress, width: int) -> str:
    filled = round(width * vm.done / vm.total) if vm.total else 0
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def _one(progress: Progress, vm: VmProgress, columns: int) -> list[str]:
    bar = f"{_bar(vm, 28)}  " if columns >= USUAL else ""
    lines = [
        f"{progress.run.name}  {vm.name}" + (f" on {vm.host}" if vm.host != vm.name else ""),
        f"  {vm.done} of {vm.total}  block {vm.block or 1} of {progress.blocks}  {bar}{_left(progress)}",
    ]
    planned = progress.run.state == RunState.PLANNED
    begun = f"{'created' if planned else 'began'} {progress.run.created_at.astimezone():%H:%M}"
    going = vm.left_s is not None and not progress.run.state.ended
    ends = f", ends about {clock_time(vm.left_s)}" if going and vm.left_s is not None else ""
    lines.append(f"  time  {begun}{ends}")
    if vm.label or vm.step or vm.waits_for:
        lines.append(f"  now   {vm.label or '':12} {vm.step_words}")
    if vm.last:
        lines.append("  last  " + "   ".join(f"{label} {_signed(outcome)}" for label, outcome in vm.last))
    if vm.note:
        lines.append(f"  note  {vm.note}")
    return lines


def _signed(outcome: str) -> str:
    """An outcome with its symbol; the first word is its state if it has more."""
    return sign(outcome.partition(",")[0], sys.stderr) + outcome


def _stopping_lines(progress: Progress) -> list[str]:
    """What a stop does and what another Ctrl-C would do; empty during restores that make progress.

    Of a restore that waits for something: how to end it, and what to do then.
    """
    if any(_is_restoring(vm) and ": " in (vm.step or "") for vm in progress.vms):
        return [
            "  The second Ctrl-C ends the retries, the third leaves the VMs as they are. "
            f"Then: vnuma restore --run {progress.run.name}",
            f"  If it does not end: kill -9 {progress.run.supervisor_pid}, then the same.",
        ]
    complete = progress.done == progress.total
    if not progress.run.stop_requested or any(map(_is_restoring, progress.vms)) or complete:
        return []
    return [f"  {stopping_words(progress)}", "  Ctrl-C again: stop now; VMs are still restored."]


def _is_restoring(vm: VmProgress) -> bool:
    return (vm.step or "").startswith(RESTORING)


def stopping_words(progress: Progress) -> str:
    """What the requested stop does."""
    after = "cell" if progress.run.stop_requested == "cell" else "iteration"
    return f"Stopping after this {after}, then restoring {', '.join(vm.name for vm in progress.vms)}."


def _left(progress: Progress) -> str:
    if progress.run.state.ended:
        return str(progress.run.state)
    if progress.run.state == RunState.PLANNED:
        return "not begun"
    return f"{duration(progress.left_s)} left" if progress.left_s is not None else "time left unknown"
