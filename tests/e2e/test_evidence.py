"""Three sources for every boot, stored with the cell; an unavailable log costs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import in_json, vnuma
from tests.support.site import write_inventory, write_study
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.lease.attempt import finish
from vnuma.engine.lease.whose_vm import find_own
from vnuma.store import attempts
from vnuma.store.rows import Outcome
from vnuma.vsphere.power import shut_down


def boots(run: str, *options: str) -> list[dict[str, Any]]:
    """The effective topologies of a run's boots, in the order run."""
    document = in_json("results", run, *options)
    return list(document["effective"][0]["boots"])


def test_every_boot_is_seen_from_three_sides_and_a_log_never_costs_a_cell(
    tmp_path: Path, lab: LabFactory
) -> None:
    """vSphere, guest and log agree; without a log of this boot it is not evaluated, and the cell counts.

    A log that its host does not return is fetched after power-off: before the next cell, or at the restore.
    """
    faults = [
        {"kind": "log_missing", "boot": 3},
        {"kind": "log_stale", "boot": 5},
        {"kind": "ticket_refused", "boot": 6},
        {"kind": "ticket_refused", "boot": 7},
    ]
    design = {"blocks": 3}
    steps = Steps.prepared(tmp_path / "home", lab(faults=faults), arms=["1x16", "4x4"], design=design)
    context = steps.take()
    for _ in range(6):
        steps.measure(context)
    steps.restore()

    seen = boots("small.1", "--store", f"sqlite:///{steps.home / 'vnuma.db'}")
    assert [boot["outcome"] for boot in seen] == ["valid"] * 6
    for boot in seen:
        nodes = boot["guest"]["numa_nodes"]
        assert boot["vsphere"]["cores_per_socket"] == boot["guest"]["cores_per_socket"]
        assert boot["errorlog"]["sockets"] == boot["guest"]["sockets"]
        assert boot["predicted"]["confidence"] in ("high", "low")
        if boot["log"]["not_evaluated"] is None:
            assert boot["log"]["vnuma_nodes"] == nodes
            assert boot["log"]["node_sizes"] == [16 // nodes] * nodes
    reasons = [boot["log"]["not_evaluated"] for boot in seen]
    assert [reason is None for reason in reasons] == [True, False, True, False, True, True]
    assert reasons[1].count("404 Not Found") == 2
    assert "; after power-off: " in reasons[1]
    assert reasons[3] == "it is still the log of the previous boot"
    sources = ["host", None, "host", "host", "vcenter", "vcenter"]
    assert [boot["log"]["source"] for boot in seen] == sources
    unseen = [any(words.startswith("vmware.log:") for words in boot["not_evaluated"]) for boot in seen]
    assert unseen == [reason is not None for reason in reasons]


@pytest.mark.parametrize("then", ["next cell", pytest.param("restore", marks=pytest.mark.long)])
def test_a_vm_that_went_off_by_itself_still_gives_the_log_that_is_owed(
    tmp_path: Path, lab: LabFactory, then: str
) -> None:
    """Before the next power-on, be it the next cell's or the restore's, whoever shut it down."""
    running = lab(faults=[{"kind": "ticket_refused", "boot": 2}])
    steps = Steps.prepared(tmp_path / "home", running)
    context = steps.take()
    attempt = steps.shape(context)
    boot_cell(context, attempt)
    ready_cell(context, attempt)
    finish(context, attempt, Outcome.VALID, None, None)
    with context.vsphere() as session:
        shut_down(session, find_own(session, context.vm), timeout_s=20)

    if then == "next cell":
        steps.shape(context)
    steps.restore()

    with steps.store.read() as connection:
        effective: Any = attempts.get_attempt(connection, attempt.id).effective
    assert (effective["log"]["source"], effective["log"]["not_evaluated"]) == ("vcenter", None)


@pytest.mark.long
def test_a_vm_that_was_moved_during_a_cell_costs_that_cell(tmp_path: Path, lab: LabFactory) -> None:
    """Another host is another machine: invalid, with both names, and no cell is measured there."""
    hosts = [{"name": "esx01", "cluster": "c1"}, {"name": "esx02", "cluster": "c1"}]
    running = lab(
        clusters=[{"name": "c1", "drs": "off"}],
        hosts=hosts,
        faults=[{"kind": "vm_moved", "vm": "sql16", "to": "esx02", "boot": 2}],
    )
    study = write_study(tmp_path, all_arms={"affinity": "none"})

    ran = vnuma("run", study, "-i", write_inventory(tmp_path, running))

    assert ran.code == 6, ran.text
    document = in_json("results", "small.1")
    lost = document["attempts_not_counted"][0]["attempts"]
    assert [item["reason"] for item in lost] == ["host_changed", "host_changed"]
    assert all("esx02" in item["detail"] and "esx01" in item["detail"] for item in lost)
