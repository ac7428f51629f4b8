"""`vnuma baseline`: the configuration that a VM is restored to, and how the VM differs from it now."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from vnuma.cli.options import (
    InventoryOption,
    StoreOption,
    TextOrJsonOption,
    label_of,
    opened_run,
    opened_store,
    run_names,
    vm_names,
)
from vnuma.cli.screen import aligned, echo, echo_json, say, width
from vnuma.cli.verb import ShowsByDefault, subcommand

app = typer.Typer(
    cls=ShowsByDefault, help="Show a VM's configuration before a run, and how the VM differs from it now."
)

VmArgument = Annotated[str, typer.Argument(metavar="VM", help="Inventory name.", autocompletion=vm_names)]
RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="The run; by default the newest.", autocompletion=run_names),
]


@subcommand(app)
def show(
    vm: VmArgument,
    run: RunOption = None,
    format_: TextOrJsonOption = "text",
    store: StoreOption = None,
) -> None:
    """Show the configuration that was saved before the first change.

    Examples: vnuma baseline show sql16; vnuma baseline show sql16 --run quick.4 --format json;
    vnuma baseline show sql16 --run quick.4.vnuma.zip
    """
    from vnuma.engine.restore.restore import baseline_values, find_baseline

    opened, asked = opened_run(run, store) if run else (opened_store(store), None)
    owner, row = find_baseline(opened, vm, asked)
    power, settings = baseline_values(row)
    if format_ == "json":
        document = {"schema": "vnuma/baseline/1", "vm": vm, "path": row.path, "run": owner.name}
        state = {"taken_at": row.baseline_at, "at_baseline": row.at_baseline, "power": power}
        echo(json.dumps({**document, **state, "settings": settings}, indent=2, default=str))
        return
    how = "restored" if row.at_baseline else "not restored yet"
    when = f"{row.baseline_at:%Y-%m-%d %H:%M} UTC"
    where = "" if row.path == vm else f" ({row.path})"
    say(f"{vm}{where} before {label_of(owner.name, run or owner.name)}, {when}; {how}")
    shown = settings if power is None else {**settings, "power": power}
    label = max(map(len, shown), default=0)
    for name, value in shown.items():
        say(f"  {name:{label}}  {_value(value)}")


@subcommand(app)
def diff(
    vm: VmArgument,
    run: RunOption = None,
    format_: TextOrJsonOption = "text",
    inventory: InventoryOption = None,
    store: StoreOption = None,
) -> None:
    """Show how a VM differs from its baseline now, and who changed it. Changes nothing.

    Examples: vnuma baseline diff sql16; vnuma baseline diff sql16 --format json
    """
    from vnuma.engine.restore.restore import baseline_values, differences_now, find_baseline

    opened = opened_store(store)
    owner, row = find_baseline(opened, vm, run)
    found = differences_now(opened, owner, row, inventory)
    if format_ == "json":
        document = {"schema": "vnuma/baseline-diff/1", "vm": vm, "run": owner.name}
        echo_json(document | {"differences": [asdict(item) for item in found]})
        return
    if not found:
        power, settings = baseline_values(row)
        with_power = "" if power is None else ", power"
        say(f"{vm} matches its baseline from before {owner.name}: {len(settings)} settings{with_power}.")
        return
    rows = [("setting", "baseline", "now", "changed by")]
    rows += [(item.setting, _value(item.baseline), _value(item.now), item.by) for item in found]
    say("\n".join(aligned(rows, width())))


def _value(value: object) -> str:
    if value is None or value in ((), []):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
