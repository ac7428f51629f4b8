"""Check before the first change whether the study's workload can run on this VM and its SQL Server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from vnuma.domain.arm.desired_settings import desired_settings, vcpus_of
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.role import LOGIN, READS_STATE
from vnuma.domain.vm.setting import Power, Settings
from vnuma.engine.access.client_machine import client_named
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.cell.shape import plan_shape
from vnuma.engine.instance import tcp_ports
from vnuma.engine.preflight.findings import Finding
from vnuma.errors import ArmImpossible, DriverMissing, EnvironmentProblem, PrivilegeMissing
from vnuma.sqlserver.client.connect import connect, located
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database import ownership
from vnuma.sqlserver.instance.server import read_permissions
from vnuma.workloads.client import client_host, driver_on
from vnuma.workloads.interface import Obstacle, workload_named

WORKLOAD = "P29"


def workload_findings(study: Study, target: Target, vm: VmFacts) -> list[Finding]:
    """Findings that prevent the workload from running; they block. An unreachable server is a warning.

    Raises DriverMissing.
    """
    if vm.power is not Power.ON:
        return [_not_asked(study, f"{vm.name} is powered off.", "Power it on")]
    workload = workload_named(study.workload.name)
    found: list[Obstacle] = []
    rights: list[Finding] = []
    try:
        server = sql_server(target)
        with connect(server) as connection:
            rights = list(_lacking_rights(study, vm.name, connection))
            found += workload.obstacles(connection, study.workload, study.dataset)
            found += tcp_ports.obstacles(study, server, connection)
    except PrivilegeMissing as error:  # every cell would meet it too
        found.append(Obstacle(error.what, error.fix or ""))
    except DriverMissing:
        raise
    except EnvironmentProblem as error:
        return [_not_asked(study, error.what, error.fix)]
    return [*rights, *(Finding.block(WORKLOAD, one.what, one.fix) for one in found)]


def _lacking_rights(study: Study, vm: str, connection: pyodbc.Connection) -> Iterator[Finding]:
    """The rights that the study's login lacks: found now, not in the first cell."""
    may = read_permissions(connection)
    own = study.workload.waits_for() is None and ownership.state(connection, study.dataset.database) is None
    for right in LOGIN if own else (READS_STATE,):
        if not right.held(may):
            name = right.named_for(may)
            yield Finding.block(
                "P00",
                f"the login for SQL Server on {vm} lacks {name}, needed for {right.purpose}.",
                f"GRANT {name} TO the login.",
            )


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


_INSTEAD = "Choose arms with vNUMA nodes on two host nodes, by affinity or more vCPUs; or disable it."


def locality_findings(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    """Findings about the two vNUMA nodes on two physical nodes that some workloads need in every arm, and the
    positive control in its own.
    """
    remote = study.workload.needs_remote_memory
    if not remote and study.control_arm is None:
        return
    who = f"workload {study.workload.name}" if remote else "design.control"
    if len(host.numa_nodes) < 2:
        yield _one_host_node(who, host)
        return
    for label in study.labels if remote else (study.reference,):
        yield from _two_nodes(study, label, who, vm, host)


def _one_host_node(who: str, host: HostFacts) -> Finding:
    """A host with one node has no remote memory, whatever the arms are."""
    return Finding.block(
        "C03",
        f"{who} needs vNUMA nodes on two physical nodes, but {host.name} has one NUMA node.",
        "Use a host with two NUMA nodes and no node interleaving in its BIOS; or disable it.",
    )


def _two_nodes(study: Study, label: str, who: str, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    arm = study.arm(label)
    try:
        prediction = plan_shape(arm, vm, host).prediction
        settings = {**vm.settings, **desired_settings(arm, vm, host)}
    except ArmImpossible:
        return  # reported for the arm itself
    fewest = min((prediction.vnuma_nodes, *prediction.alternatives))
    if prediction.vnuma_nodes < 2:
        yield Finding.block(
            "C01",
            f"{who} needs two vNUMA nodes, but arm {arm.label} gives the guest "
            f"{prediction.vnuma_nodes}: {prediction.because}.",
            _INSTEAD,
        )
        return
    if fewest < 2:
        yield Finding.warn(
            "C02",
            f"Arm {arm.label} may give the guest {fewest} vNUMA node; {who} then fails.",
            "Run one block first.",
        )
    vcpus = vcpus_of(arm, vm)
    nodes = physical_nodes(vcpus, settings, host)
    if nodes < 2:
        yield Finding.block(
            "C03",
            f"{who} needs vNUMA nodes on two physical nodes, but the {vcpus} vCPUs of arm {arm.label} "
            f"fit on one node of {host.name}: all memory would be local.",
            _INSTEAD,
        )


def physical_nodes(vcpus: int, settings: Settings, host: HostFacts) -> int:
    """The fewest host nodes that the VM may run on, by its CPU affinity or else its size."""
    affinity = settings.get("cpuAffinity")
    if isinstance(affinity, tuple) and affinity:
        return sum(bool(set(affinity) & set(node.cpus)) for node in host.numa_nodes)
    return min(len(host.numa_nodes), -(-vcpus // host.cores_per_node))
