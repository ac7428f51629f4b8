"""What keeps reporting streams from running: one sentence each, before the first change to the VM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.run.next_cell import NoCell, claim_next_cell
from vnuma.errors import PreflightBlocked, PrivilegeMissing
from vnuma.store.rows import Claim

SCENARIO = Path(__file__).parents[2] / "lab" / "internal" / "scenario" / "builtin" / "shea2012.yml"
ARMS = [
    {"topology": "2x6", "name": "local", "workload": {"placement": "local"}},
    {"topology": "2x6", "name": "remote", "workload": {"placement": "remote"}},
]
STREAMS: dict[str, Any] = {
    "vcpus": 12,
    "reference": "local",
    "arms": ARMS,
    "workload": {"name": "reporting_streams", "sizes": [2], "scale_factor": 0.001},
}


def scenario(sql: Mapping[str, Any], **vm: Any) -> dict[str, Any]:
    """The machine of shea2012 with another SQL Server, or another VM."""
    played: dict[str, Any] = YAML(typ="safe").load(SCENARIO.read_text(encoding="utf-8"))
    played["vms"] = [{**played["vms"][0], **vm, "sql": {**played["vms"][0]["sql"], **sql}}]
    return played


def refused(home: Path, running: LabHandle, **changes: Any) -> str:
    """Preflight's text; the VM is unchanged."""
    before = settings_now(running)
    with pytest.raises(PreflightBlocked) as blocked:
        Steps.prepared(home, running, **{**STREAMS, **changes})
    assert settings_now(running) == before
    return str(blocked.value)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ({"platform": "linux"}, "SQL Server runs on Linux, where ports cannot be mapped to NUMA nodes."),
        (
            {"listen_all": False},
            "(Listen All is No)",
        ),
        ({"dynamic_port": True}, "exactly one fixed TCP port (TcpPort '', TcpDynamicPorts '"),
    ],
    ids=["Linux", "Listen All off", "dynamic ports"],
)
def test_a_server_whose_ports_cannot_be_mapped_is_refused(
    tmp_path: Path, lab: LabFactory, sql: dict[str, Any], sentence: str
) -> None:
    """Linux has no registry; single addresses and dynamic ports take no further port for all."""
    assert sentence in refused(tmp_path / "a", lab(scenario(sql)))


@pytest.mark.parametrize(
    ("granted", "sentence"),
    [
        ([], "the login may not see the server's state"),
        (
            ["VIEW SERVER STATE", "ALTER SETTINGS", "CREATE ANY DATABASE"],
            "The login is not a member of sysadmin, so it can neither map ports nor empty the buffer pool.",
        ),
    ],
    ids=["no VIEW SERVER STATE", "no sysadmin"],
)
def test_a_login_with_too_few_rights_is_refused(
    tmp_path: Path, lab: LabFactory, granted: list[str], sentence: str
) -> None:
    """Seeing the server's state is not enough: the registry is written by members of sysadmin alone."""
    running = lab(scenario({"logins": {"limited": granted}}))
    object.__setattr__(running.vms["sql16"], "user", "limited")

    assert sentence in refused(tmp_path / "a", running)


def test_a_registry_that_may_not_be_written_ends_the_vms_cells_at_the_first_boot(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The ports are mapped in the first boot that proves whose SQL Server it is.

    Every further cell would fail alike, until the VM is taken over again: permission may have been granted
    then.
    """
    running = lab(scenario({"registry_read_only": True}))
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running, **STREAMS)

    context = steps.take()
    attempt = steps.shape(context)
    boot_cell(context, attempt)
    with pytest.raises(PrivilegeMissing, match="SQL Server could not write its TcpPort setting"):
        ready_cell(context, attempt)
    ended = claim_next_cell(context)

    assert isinstance(ended, NoCell)
    assert ended.final
    steps.restore()
    assert settings_now(running) == before
    again = claim_next_cell(steps.take())
    assert isinstance(again, Claim)
    assert again.number == 2


def test_too_little_memory_on_a_node_is_found_before_the_first_change(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Half of what SQL Server may take is less than the table; the factor that would do is named."""
    said = refused(
        tmp_path / "a", lab(scenario({}, memory_gb=8)), workload={**STREAMS["workload"], "scale_factor": 1}
    )

    assert "The table of about 9,000 MB (50,000,000 rows) does not fit one memory node" in said


def test_one_memory_node_is_refused(tmp_path: Path, lab: LabFactory) -> None:
    """Nothing is remote in a guest that sees one node."""
    arms = [{**arm, "topology": "1x4"} for arm in ARMS]
    said = refused(tmp_path / "a", lab(scenario({})), vcpus=4, arms=arms)

    assert "C01 workload reporting_streams needs two vNUMA nodes, but arm local gives the guest 1" in said


def test_two_nodes_on_one_physical_node_are_refused(tmp_path: Path, lab: LabFactory) -> None:
    """What is virtually remote would be the same memory."""
    arms = [{**arm, "topology": "2x3", "vnuma_nodes": 2} for arm in ARMS]
    said = refused(tmp_path / "a", lab(scenario({})), vcpus=6, arms=arms)

    assert (
        "C03 workload reporting_streams needs vNUMA nodes on two physical nodes, but the 6 vCPUs of arm "
        "local fit on one node of esx01: all memory would be local." in said
    )
