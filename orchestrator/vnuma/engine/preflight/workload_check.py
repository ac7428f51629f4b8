"""Check before the first change whether the study's workload can run on this SQL Server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.client_machine import client_named
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.instance import tcp_ports
from vnuma.engine.preflight.findings import Finding
from vnuma.errors import DriverMissing, EnvironmentProblem, PrivilegeMissing
from vnuma.sqlserver.client.connect import connect, located
from vnuma.workloads.bench import Obstacle
from vnuma.workloads.call_volume.callers import driver_on
from vnuma.workloads.client import client_host
from vnuma.workloads.find import workload_named

WORKLOAD = "P29"


def workload_findings(study: Study, target: Target, vm: VmFacts) -> list[Finding]:
    """Findings that prevent the workload from running; they block. An unreachable server is a warning.

    Raises DriverMissing.
    """
    if vm.power is not Power.ON:
        return [_not_asked(study, f"{vm.name} is powered off.", "Power it on")]
    workload = workload_named(study.workload.name)
    found: list[Obstacle] = []
    try:
        server = sql_server(target)
        with connect(server) as connection:
            found += workload.obstacles(connection, study.workload, study.dataset)
            found += tcp_ports.obstacles(study, server, connection)
    except PrivilegeMissing as error:  # every cell would meet it too
        found.append(Obstacle(error.what, error.fix or ""))
    except DriverMissing:
        raise
    except EnvironmentProblem as error:
        return [_not_asked(study, error.what, error.fix)]
    return [Finding.block(WORKLOAD, one.what, one.fix) for one in found]


def _not_asked(study: Study, why: str, fix: str | None) -> Finding:
    remedy = (fix or "Fix this").rstrip(".")
    return Finding.warn(
        WORKLOAD,
        f"Whether the workload {study.workload.name} can run was not evaluated: {why}",
        f"{remedy}, then start again; otherwise the first cell will show it.",
    )


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
