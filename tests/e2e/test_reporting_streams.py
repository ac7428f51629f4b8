"""Local against remote pages: mapped ports, proven pages, an effect and none, everything restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.domain.vm.endpoint import ports_of
from vnuma.engine.access.connections import sql_server
from vnuma.engine.audit.log import audit_lines
from vnuma.engine.instance.sql_settings import TCP_PORTS
from vnuma.errors import PlacementNotProven
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance import server_configuration
from vnuma.workloads.reporting_streams.settings import REMOTE_SCAN

pytestmark = pytest.mark.long

STREAMS: dict[str, Any] = {
    "vcpus": 12,
    "reference": "local",
    "arms": [
        {"topology": "2x6", "name": "local", "workload": {"placement": "local"}},
        {"topology": "2x6", "name": "remote", "workload": {"placement": "remote"}},
    ],
    "design": {"blocks": 1, "order": "fixed", "a_a": False, "warmups": 0, "iterations": 1},
    "workload": {
        "name": "reporting_streams",
        "sizes": [32],
        "forms": ["report"],
        "scale_factor": 0.001,
        "queries_per_stream": 1,
    },
}


def ports(steps: Steps) -> tuple[str | None, frozenset[int]]:
    """SQL Server's port setting, and the ports on which it listens."""
    with connect(sql_server(steps.target)) as connection:
        return server_configuration.read_settings(connection).ports, server_configuration.listening(
            connection
        )


def rates(steps: Steps) -> list[float]:
    """Queries an hour of every sample, in the order measured."""
    return [stored.sample.value for stored in steps.samples if stored.sample.value is not None]


def scans(steps: Steps) -> list[float]:
    """What a scan took from the other node, over the same from the pages' own, of every sample."""
    return [(stored.sample.figures or {})[REMOTE_SCAN.name] for stored in steps.samples]


@pytest.mark.parametrize(
    ("scenario", "ratio", "alone"),
    [("shea2012", 1.05, 1.009), ("shea2012-null", 1.0, 1.0)],
)
def test_remote_pages_cost_what_the_scenario_says_and_the_ports_come_back(
    tmp_path: Path, lab: LabFactory, scenario: str, ratio: float, alone: float
) -> None:
    """Both boots count at the first try, since masks are predicted; noise of boots is 0.3%.

    A scan by itself costs less from the other node than one of 32 streams.
    """
    long_enough_to_be_timed = STREAMS["workload"] | {"scale_factor": 0.002}
    steps = Steps.prepared(tmp_path / "a", lab(scenario), **STREAMS | {"workload": long_enough_to_be_timed})
    context = steps.take()
    before = TCP_PORTS.baseline_of(steps.vm)
    assert before is not None

    steps.measure(context)
    steps.measure(context)

    local, remote = rates(steps)
    assert local / remote == pytest.approx(ratio, abs=0.02)
    assert scans(steps) == [pytest.approx(alone, abs=0.02)] * 2
    one, two = sql_server(steps.target).node_ports
    assert ports(steps)[0] == f"{before},{one}[0x1],{two}[0x2]"
    steps.restore()
    assert ports(steps) == (before, frozenset(ports_of(before)))
    changes = [line.change[0] for line in audit_lines(steps.store, None) if line.action == "TCP ports"]
    assert [change["after"] for change in changes] == [f"{before},{one}[0x1],{two}[0x2]", before]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            {"kind": "foreign_pages", "factor": 0.2},
            r"19\.99% of the tables' .* pages are on memory nodes other than 0",
        ),
        pytest.param(
            {"kind": "foreign_lookups", "factor": 0.01},
            r"With placement local, 1\.00% of .* page lookups were remote; at most 0\.1% may be",
        ),
        pytest.param(
            {"kind": "ports_elsewhere"},
            r"A connection to port \d+ \(local_tcp_port \d+\) has affinity to memory node 1, not 0",
        ),
    ],
    ids=["pages", "lookups", "port"],
)
def test_a_local_boot_that_is_not_local_does_not_count(
    tmp_path: Path, lab: LabFactory, fault: dict[str, Any], says: str
) -> None:
    """Pages, page lookups and connections are looked at, not assumed; the ports come back all the same."""
    running = lab("shea2012")
    steps = Steps.prepared(tmp_path / "a", running, **STREAMS)
    context = steps.take()
    before = TCP_PORTS.baseline_of(steps.vm)
    running.fault(times=0, **fault)

    with pytest.raises(PlacementNotProven, match=says):
        steps.measure(context)

    assert rates(steps) == []
    steps.restore()
    assert ports(steps)[0] == before
