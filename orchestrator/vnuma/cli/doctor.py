"""`vnuma doctor`: check everything that a study needs. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.cli.options import (
    InventoryOption,
    SiteOption,
    TextOrJsonOption,
    VmsArgument,
    find_inventory,
    inventory_of,
    reached_by,
)
from vnuma.cli.screen import echo, echo_json, say, signed
from vnuma.errors import EnvironmentProblem, InputError, UsageError
from vnuma.words.plain_text import counted
from vnuma.words.provenance import in_json, scenario_of

if TYPE_CHECKING:
    from vnuma.engine.doctor.diagnose_vm import Diagnosis


def doctor(
    vms: VmsArgument = None,
    inventory: InventoryOption = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Record the answers, without names, in a file."),
    ] = None,
    notify: Annotated[
        bool, typer.Option("--notify", help="Send a test notification through each entry of vnuma_notify.")
    ] = False,
    site: SiteOption = None,
    format_: TextOrJsonOption = "text",
) -> None:
    """Check driver, vCenter, certificate, VM, privileges and SQL Server. Exit code 4 when one fails.

    For a Linux machine: connection, root, NUMA nodes, numactl.

    --record asks harmless questions and changes nothing; read the file before you send it.

    Examples: vnuma doctor; vnuma doctor sql16 -i inventory; vnuma doctor sql16 --record contact.yml;
    vnuma doctor localhost; vnuma doctor --notify; vnuma doctor --site site-b
    """
    from vnuma.engine.access.inventory import of_site
    from vnuma.engine.doctor.diagnose import diagnose, diagnose_notify

    where = inventory_of(inventory, vms) if vms else find_inventory(inventory)
    targets = where.targets(vms) if vms else of_site(where.targets(), site)
    if site and not targets:
        raise InputError(
            f"No VM is at {site} in {where}.", fix=f"Give each VM of that site vnuma_site: {site}"
        )
    if record:
        from vnuma.engine.doctor.first_contact import record_contact

        if len(targets) != 1:
            raise UsageError("A recording covers one VM.", fix=f"vnuma doctor VM --record {record}")
        record_contact(next(iter(targets.values())), record)
        say(f"Recorded {record}: names, addresses and accounts are left out. Nothing was changed.")
        return
    notified = diagnose_notify(where, targets, send=notify)
    findings = [*diagnose(targets, where), *notified]
    if format_ == "json":
        # A lab identifies itself in its vCenter's or its machine's name.
        scenario = next(filter(None, (scenario_of(item.what) for item in findings)), None)
        checks = [asdict(item) for item in findings]
        echo_json({"schema": "vnuma/doctor/1", **in_json(scenario), "checks": checks})
    else:
        say(f"Reads {reached_by(where, targets)}")
        _show(findings)
    failed = sum(item.state == "FAIL" for item in findings)
    warned = sum(item.state == "warn" for item in findings)
    closing = f"{failed} failed, {counted(warned, 'warning')}. Nothing was changed."
    if failed:
        raise EnvironmentProblem(closing)
    if format_ == "text":
        echo(closing)


def _show(findings: Iterable[Diagnosis]) -> None:
    for item in findings:
        say(signed(f"{item.state:5} {item.subject:11} {item.what}"))
        for line in item.more:
            say(signed(f"{'':17} {line}"))
