"""Check the client machine that calls SQL Server over the network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vnuma.engine.access.client_machine import client_named
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.preflight.findings import Finding
from vnuma.engine.preflight.workload_check import WORKLOAD
from vnuma.errors import EnvironmentProblem
from vnuma.sqlserver.client.connect import located
from vnuma.workloads.call_volume.callers import driver_on
from vnuma.workloads.client import client_host

_BROWSER_S = 5.0


def client_findings(inventory: Path, name: str, targets: Mapping[str, Target]) -> dict[str, list[Finding]]:
    """What prevents that host from calling each VM's SQL Server, by VM. Changes nothing.

    `targets` are the VMs that are on. Raises InputError as `client_named` does.
    """
    client = client_named(inventory, name)
    found: dict[str, list[Finding]] = {}
    try:
        with client_host(client) as (host, hello):
            for vm, target in targets.items():
                server = located(sql_server(target), _BROWSER_S)
                driver_on(client, hello, server.driver)
                if why := host.why_not(server.host, server.port):
                    what = f"{client.name} does not reach SQL Server at {server.where}: {why}."
                    found[vm] = [_block(what, "Open its firewall for that machine, or name another client.")]
    except EnvironmentProblem as error:
        return {vm: [_block(error.what, error.fix or "")] for vm in targets}
    return found


def _block(what: str, fix: str) -> Finding:
    return Finding.block(WORKLOAD, what, fix)
