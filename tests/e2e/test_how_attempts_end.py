"""How an attempt ends when something goes wrong that nobody expected, and what may be tried again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cut import Forwarder, How
from tests.support.looking import settings_now
from tests.support.stores import attempt_lines
from vnuma.domain.study.study import Evidence
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import sql_server
from vnuma.engine.cell import evidence
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.cell.measure_cell import Turn, measure_turn
from vnuma.engine.run.next_cell import NoCell, claim_next_cell
from vnuma.errors import ConnectionDropped, EnvironmentProblem, ReconfigureRefused, SqlFailed
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.query import run
from vnuma.sqlserver.instance.ready import read_ticks
from vnuma.store.rows import Claim
from vnuma.vsphere.connect import Session
from vnuma.workloads.interface import Reading


def test_one_fault_costs_one_attempt_and_the_cell_is_repeated(tmp_path: Path, lab: LabFactory) -> None:
    """The first attempt is stored with its reason, the second is valid."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running, limits={"attempts_per_cell": 2})
    context = steps.take()
    steps.measure(context)
    running.fault("reconfigure_refused")

    with pytest.raises(ReconfigureRefused):
        steps.shape(context)
    steps.measure(context)

    ended = [line.reason or str(line.outcome) for line in attempt_lines(steps.store)]
    assert ended == ["valid", "reconfigure_refused", "valid"]
    assert isinstance(claim_next_cell(context), NoCell)


@dataclass(frozen=True)
class CutBench:
    """A workload's bench whose connection is cut while nothing is timed, or that asks what cannot be."""

    server: SqlServer
    between: Forwarder
    how: How | None

    def __call__(self, _size: int, _form: str) -> Reading:
        """One iteration."""
        with connect(self.server) as connection:
            if self.how is not None:
                self.between.cut(self.how)
            run(connection, "SELECT v.missing FROM sys.dm_os_nodes AS v")
        return Reading(1.0)


def test_an_iteration_that_fails_untimed_is_a_failed_sample_too(tmp_path: Path, lab: LabFactory) -> None:
    """A FIN, a RST or an error outside of the timed statement: a sample with its reason, and its own kind."""
    steps = Steps.prepared(tmp_path / "a", lab())
    context = steps.take()
    claimed = claim_next_cell(context)
    assert isinstance(claimed, Claim)
    server = sql_server(steps.target)

    with Forwarder(server.host, server.port) as between:
        cut: list[How | None] = ["end", "reset", None]
        for iteration, how in enumerate(cut, 1):
            bench = CutBench(replace(server, port=between.port), between, how)
            with pytest.raises(SqlFailed if how is None else ConnectionDropped):
                measure_turn(context, claimed, bench, Turn(10, "client", iteration, warmup=False))

    assert [stored.sample.reason is None for stored in steps.samples] == [False] * 3


def test_a_log_that_is_long_in_coming_does_not_age_the_server(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The VM's age is that of the moment when the server is asked, not of the look at vSphere before."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running, power={"sql_timeout_s": 2})
    context = steps.take()
    attempt = steps.shape(context)
    boot_cell(context, attempt)
    fetch = evidence.fetch

    def slowly(session: Session, vm: VmFacts, wanted: Evidence) -> evidence.Fetched:
        running.wait_until(lambda: uptime(steps) > 3, what="an uptime of 3 s")
        return fetch(session, vm, wanted)

    monkeypatch.setattr(evidence, "fetch", slowly)

    seen = ready_cell(context, attempt)
    assert seen
    assert seen["guest"]["vcpus"] == 16


def uptime(steps: Steps) -> float:
    """Seconds since SQL Server's start; 0 while it does not answer."""
    try:
        with connect(sql_server(steps.target)) as connection:
            return read_ticks(connection).uptime_s
    except EnvironmentProblem:
        return 0.0


def test_on_esxi_8_a_cell_may_begin_with_a_reboot_that_ends_powered_off(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The VM is off and in its shape; the setting for it does not count as somebody else's change."""
    running = lab(esxi={"version": "8.0.3", "build": "1"})
    steps = Steps.shaped(tmp_path / "a", running, power={"guest_is_asked_to": "reboot"})
    assert settings_now(running)["power"] == "poweredOff"

    done = steps.restore()

    assert (done.equal, done.power) == (done.settings, Power.ON)
