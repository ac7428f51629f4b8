"""`vnuma status`: every run, its progress, and the VMs that are not at their baseline."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.assets import typed
from vnuma.cli.options import StoreOption, TextOrJsonOption, run_names
from vnuma.cli.screen import WIDEST, aligned, clock_time, echo, echo_json, say, sign, width
from vnuma.words.plain_text import duration
from vnuma.words.provenance import in_json, kind

if TYPE_CHECKING:
    from vnuma.engine.run.progress import Overview, RunLine


def status(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Only this run, in detail.", autocompletion=run_names)
    ] = None,
    format_: TextOrJsonOption = "text",
    store: StoreOption = None,
) -> None:
    """Show runs, their progress and VMs that are not at their baseline.

    Examples: vnuma status; vnuma status quick.4; vnuma status --format json
    """
    from vnuma.engine.run.progress import overview

    seen = overview(store, run)
    if format_ == "json":
        echo_json(_document(seen))
        return
    if run and seen.progress:
        from vnuma.cli.progress import detail_lines

        lines = [*_table(seen), *_hidden(seen), *detail_lines(seen.progress, width() or WIDEST)]
        say("\n".join(lines))
    else:
        say(
            "\n".join([*_table(seen), *_hidden(seen)])
            if seen.runs
            else f"No runs yet. Start one: vnuma run {typed('studies/quick.yml')}"
        )
    if seen.not_at_baseline:
        echo(f"VMs not at baseline: {len(seen.not_at_baseline)}")
        for vm in seen.not_at_baseline:
            why = f" ({vm.outcome})" if vm.outcome else ""
            what = f"in use by {vm.run}" if vm.in_use else f"left by {vm.run}{why}; vnuma restore {vm.vm}"
            say(f"  {vm.vm}: {what}")
    else:
        echo("VMs not at baseline: 0")


def _table(seen: Overview) -> list[str]:
    rows = [("RUN", "STATE", "CELLS", "VM", "LEFT", "LAST EVENT")]
    rows += [_row(line) for line in seen.runs]
    return aligned(rows, width())


def _hidden(seen: Overview) -> list[str]:
    """Sites whose work cannot be seen now."""
    return [f"  {line.run} at {words}" for line in seen.runs for words in line.sites]


def _row(line: RunLine) -> tuple[str, str, str, str, str, str]:
    left = "-"
    if line.left_s is not None and line.alive:
        left = f"{duration(line.left_s)}, to {clock_time(line.left_s)}"
    state = line.state if line.alive or line.state != "running" else "died"
    mark = f" ({kind(line.simulated)})" if line.simulated else ""
    return line.run, sign(state) + state + mark, f"{line.valid}/{line.total}", line.vms, left, line.event


def _document(seen: Overview) -> dict[str, object]:
    document = asdict(replace(seen, progress=None))
    del document["progress"]  # shown only as text
    lines = [asdict(line) | in_json(line.simulated) for line in seen.runs]
    return {"schema": "vnuma/status/1", **document, "runs": lines}
