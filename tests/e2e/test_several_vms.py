"""One study, several VMs: on one host they take turns, on different hosts and vCenters they do not wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import combinations
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study
from vnuma.store import attempts, leases, runs
from vnuma.store.open import open_store

Span = tuple[datetime, datetime]

SMALL_VM = {"memory_gb": 32}


@pytest.fixture
def measured(vnuma_home: Path) -> Callable[[], dict[str, list[Span]]]:
    """A function that reads from the store, by VM, when each of its cells was measured."""

    def spans() -> dict[str, list[Span]]:
        with open_store(f"sqlite:///{vnuma_home / 'vnuma.db'}").read() as connection:
            run = runs.get_run(connection, "small.1")
            names = {vm.id: vm.name for vm in leases.vms_of_run(connection, run.id)}
            found: dict[str, list[Span]] = {name: [] for name in names.values()}
            for line in attempts.lines_of_run(connection, run.id):
                assert line.ended_at
                found[names[line.vm_id]].append((line.started_at, line.ended_at))
            return found

    return spans


def at_once(one: list[Span], other: list[Span]) -> bool:
    """Whether some cell of one VM and some cell of the other were measured at the same time."""
    return any(a < d and c < b for a, b in one for c, d in other)


@pytest.mark.long
def test_hosts_and_vcenters_work_side_by_side_and_vms_of_one_host_take_turns(
    tmp_path: Path, lab: LabFactory, measured: Callable[[], dict[str, list[Span]]]
) -> None:
    """The host of the second vCenter has the first one's name, and is another machine all the same."""
    hosts = [{"name": "esx01"}, {"name": "esx02"}]
    names = {"a1": "esx01", "a2": "esx01", "b1": "esx02"}
    east = lab(hosts=hosts, vms=[SMALL_VM | {"name": name, "host": host} for name, host in names.items()])
    west = lab(vms=[SMALL_VM | {"name": "w1"}])
    inventory = tmp_path / "inventory"
    for running in (east, west):
        folder = inventory / running.folder.name
        folder.mkdir(parents=True)
        write_inventory(folder, running).rename(inventory / f"{running.folder.name}.yml")
    vms_of_study = [*names, "w1"]
    before = [settings_now(east, name) for name in names]
    study = write_study(tmp_path, vms=vms_of_study)

    ran = vnuma("run", study, "-i", inventory)

    assert ran.code == 0, ran.text
    spans = measured()
    assert not at_once(spans["a1"], spans["a2"])
    overlapping = {pair for pair in combinations(sorted(spans), 2) if at_once(spans[pair[0]], spans[pair[1]])}
    assert {("a1", "b1"), ("a2", "b1")} & overlapping
    assert {("a1", "w1"), ("a2", "w1")} & overlapping
    assert [settings_now(east, name) for name in names] == before
