"""Looking ahead from a live vCenter: a VM as it is, and a cluster that one could be put into."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import LabFactory
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory


def test_a_live_vm_is_predicted_and_said_to_be_simulated(shared_lab: LabHandle, tmp_path: Path) -> None:
    """As it is, on its own host; the lab says that it is one."""
    shown = vnuma_here(
        "predict", "--vm", "sql16", "-i", write_inventory(tmp_path, shared_lab), "--format", "json"
    )

    assert shown.code == 0, shown.text
    document = json.loads(shown.out)
    assert (document["vm"], bool(document["simulated"])) == ("sql16", True)
    assert document["rows"][0]["topology"] == "4x4"
    assert document["rows"][0]["vnuma_nodes"] in {1, 4}


UNLIKE = {"name": "unlike", "esxi": {"version": "8.0.2"}, "fleet": {"hosts": 60, "vms": 60}}


def test_a_whole_cluster_of_unlike_hosts_is_predicted(lab: LabFactory, tmp_path: Path) -> None:
    """Hosts that give the same share a row; the one that is not like the others has its own."""
    site = write_inventory(tmp_path, lab(UNLIKE))
    shown = vnuma_here(
        *(
            "predict",
            "--vcpus",
            "24",
            "--memory",
            "160",
            "--cluster",
            "cluster03",
            "--cores-per-socket",
            "12",
        ),
        *("-i", site, "--format", "json"),
    )

    assert shown.code == 0, shown.text
    document = json.loads(shown.out)
    rows = {next(iter(row["hosts"])): row for row in document["rows"]}
    assert sorted(len(row["hosts"]) for row in rows.values()) == [1, 13]
    assert document["hosts_not_read"] == ["fleet-esx052"]
    lone = rows["fleet-esx045"]
    assert (lone["esxi"], lone["vnuma_nodes"]) == ("6.7.0", 2)
    common = next(row for name, row in rows.items() if name != "fleet-esx045")
    assert (common["esxi"], common["vnuma_nodes"]) == ("8.0.2", 2)
    assert lone["remote_mb"] != common["remote_mb"] or lone["because"] != common["because"]


def test_advice_for_unlike_hosts_holds_on_each_of_them(lab: LabFactory, tmp_path: Path) -> None:
    """A shape that gives other nodes on another host of the cluster is to be avoided, and says so."""
    site = write_inventory(tmp_path, lab(UNLIKE))
    vm = ("--vcpus", "24", "--memory", "160", "--cluster", "cluster03")
    shown = vnuma_here("advise", *vm, "-i", site, "--format", "json")

    assert shown.code == 0, shown.text
    document = json.loads(shown.out)
    assert document["hosts_not_read"] == ["fleet-esx052"]
    assert {one["worth"] for one in document["candidates"]} >= {"having", "avoiding"}
