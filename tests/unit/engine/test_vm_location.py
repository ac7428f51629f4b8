"""Where a VM runs or is to run, out of a snapshot."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.hosts import host_of, vm_of
from vnuma.domain.topology.forecast import PlannedGuest, forecast_on
from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.domain.vm.facts import ClusterFacts, VmFacts
from vnuma.engine.design_check.estates import location_of_cluster, location_of_vm
from vnuma.errors import InputError, VmNotFound, VnumaError
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


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("sql16", VmNotFound),  # two have that name
        ("/DC0/vm/old/sql16", None),
        ("web1", VmNotFound),
        ("sql17", InputError),  # without a host
    ],
)
def test_a_vm_is_found_by_its_name_or_path(tmp_path: Path, name: str, error: type[VnumaError] | None) -> None:
    """And refused where it cannot be told which, or where it is to run."""
    old = replace(vm_of(), path="/DC0/vm/old/sql16", instance_uuid="j")
    lost = replace(vm_of(), name="sql17", path="/DC0/vm/sql17", instance_uuid="k", host_moid="host-9")
    file = snapshot(tmp_path, vm_of(), old, lost)

    with pytest.raises(error) if error else nullcontext():
        assert location_of_vm(name, file, None).vm
    with pytest.raises(InputError):
        location_of_vm(name, None, None)


@pytest.mark.parametrize(("pattern", "hosts"), [("SQL-A", 1), ("W*", 1), ("SQL-?", None), ("none", None)])
def test_a_pattern_names_the_one_cluster_that_it_matches(
    tmp_path: Path, pattern: str, hosts: int | None
) -> None:
    """Of several, or none, it names those that there are."""
    clusters = tuple(ClusterFacts(name, name, True, (host_of(),)) for name in ("SQL-A", "SQL-B", "WEB"))
    made = Estate(
        "vc", "vcenter", "2026-11-20T00:00:00+00:00", "vCenter", "8.0", (EstateVm(vm_of()),), clusters
    )
    save([made], tmp_path / "estate.json")

    if hosts is not None:
        assert len(location_of_cluster(pattern, tmp_path / "estate.json", None).hosts) == hosts
        return
    with pytest.raises(InputError) as refused:
        location_of_cluster(pattern, tmp_path / "estate.json", None)
    assert {"SQL-A", "SQL-B"} <= set(re.findall(r"[\w-]+", str(refused.value)))
