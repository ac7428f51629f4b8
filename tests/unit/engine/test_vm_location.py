"""Where a VM runs or is to run, out of a snapshot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.hosts import host_of, vm_of
from vnuma.domain.topology.forecast import PlannedGuest, forecast_on
from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.domain.vm.facts import ClusterFacts, VmFacts
from vnuma.engine.design_check.estates import location_of_cluster, location_of_vm
from vnuma.errors import InputError, VmNotFound
from vnuma.estate.snapshot import save


def snapshot(folder: Path, *vms: VmFacts) -> Path:
    """A cluster of two unlike hosts, one more that could not be read, and these VMs."""
    hosts = (host_of(), replace(host_of(nodes=4, cores=8), moid="host-2", name="esx02"))
    cluster = ClusterFacts("c1", "SQL", True, hosts, ("esx03",))
    made = Estate(
        "vc", "vcenter", "2026-11-20T00:00:00+00:00", "vCenter", "8.0", tuple(map(EstateVm, vms)), (cluster,)
    )
    save([made], folder / "estate.json")
    return folder / "estate.json"


def test_a_vms_own_host_comes_first_and_what_was_not_read_is_named(tmp_path: Path) -> None:
    """On the second host of its cluster."""
    location = location_of_vm("sql16", snapshot(tmp_path, replace(vm_of(), host_moid="host-2")), None)

    assert [host.name for host in location.hosts] == ["esx02", "esx01"]
    assert location.unread == ("esx03",)
    assert location.vm
    assert location.vm.settings["numCPUs"] == 16


def test_what_an_export_does_not_tell_of_a_vm_is_named(tmp_path: Path) -> None:
    """Predictions are then less sure."""
    cluster = ClusterFacts("c1", "SQL", True, (host_of(),), ())
    told = EstateVm(vm_of(), {"extraConfig": "an RVTools export holds none"})
    made = Estate("vc", "rvtools", "2026-11-20T00:00:00+00:00", "RVTools", "4.7", (told,), (cluster,))
    save([made], tmp_path / "estate.json")

    location = location_of_vm("sql16", tmp_path / "estate.json", None)

    assert location.unseen == ("extraConfig",)
    assert location.vm
    (row,) = forecast_on(
        {**location.vm.settings, "numCPUs": 24}, 13, location.hosts, PlannedGuest(), location.unseen
    )
    assert row.confidence == "low"
    assert "numa.* keys were not read" in row.prediction.because


def test_two_vms_of_one_name_are_distinguished_by_path(tmp_path: Path) -> None:
    """The name alone is refused; the path finds it."""
    file = snapshot(tmp_path, vm_of(), replace(vm_of(), path="/DC0/vm/old/sql16", instance_uuid="j"))

    with pytest.raises(VmNotFound, match="2 VMs are named sql16"):
        location_of_vm("sql16", file, None)
    assert location_of_vm("/DC0/vm/old/sql16", file, None).vm


def test_an_unknown_vm_and_a_vm_without_a_host_are_refused(tmp_path: Path) -> None:
    """The second with the way to describe the host."""
    file = snapshot(tmp_path, replace(vm_of(), host_moid="host-9", host_name="esx09"))

    with pytest.raises(VmNotFound, match="contains no VM named web1"):
        location_of_vm("web1", file, None)
    with pytest.raises(InputError, match="--host-nodes"):
        location_of_vm("sql16", file, None)


def test_a_cluster_gives_its_hosts_and_an_unknown_one_names_those_there_are(tmp_path: Path) -> None:
    """By its name."""
    file = snapshot(tmp_path)

    assert len(location_of_cluster("SQL", file, None).hosts) == 2
    with pytest.raises(InputError, match="There are: SQL"):
        location_of_cluster("WEB", file, None)


def test_a_pattern_names_the_one_cluster_that_it_matches(tmp_path: Path) -> None:
    """Of several it names those."""
    clusters = tuple(ClusterFacts(name, name, True, (host_of(),)) for name in ("SQL-A", "SQL-B", "WEB"))
    made = Estate(
        "vc", "vcenter", "2026-11-20T00:00:00+00:00", "vCenter", "8.0", (EstateVm(vm_of()),), clusters
    )
    save([made], tmp_path / "estate.json")

    assert len(location_of_cluster("W*", tmp_path / "estate.json", None).hosts) == 1
    with pytest.raises(InputError, match=r"several clusters(.|\n)*: SQL-A, SQL-B\."):
        location_of_cluster("SQL-?", tmp_path / "estate.json", None)


def test_without_a_source_the_way_to_name_one_is_said() -> None:
    """Neither snapshot nor inventory."""
    with pytest.raises(InputError, match="--snapshot FILE"):
        location_of_vm("sql16", None, None)
