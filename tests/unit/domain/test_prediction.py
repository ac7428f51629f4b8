"""The predictor against the golden cases that the lab's Go tests read too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from vnuma.domain.topology.prediction import HostShape, Prediction, predict
from vnuma.domain.topology.release import hardware_version_of
from vnuma.domain.vm.setting import Value

DATA = Path(__file__).parents[2] / "data"
CASES = yaml.load((DATA / "vnuma_golden.yml").read_text(), yaml.CSafeLoader)["cases"]


def settings_of(vm: dict[str, Any]) -> dict[str, Any]:
    """A case's VM as settings."""
    settings = {
        "numCPUs": vm["vcpus"],
        "numCoresPerSocket": vm.get("cores_per_socket", 1),
        "autoCoresPerSocket": vm.get("cores_per_socket_auto", False),
        "cpuHotAddEnabled": vm.get("cpu_hot_add", False),
        "exposeVnumaOnCpuHotadd": vm.get("expose_vnuma_on_hot_add", False),
        "coresPerNumaNode": vm.get("cores_per_numa_node"),
    }
    return settings | (vm.get("extra_config") or {})


OWN_HARDWARE = {"6.0": 11, "6.5": 13, "6.7": 14, "7.0": 17, "8.0": 20}


def hardware_of(case: dict[str, Any]) -> int:
    """The case's virtual hardware: the newest of its release where it says none."""
    return int(case["vm"].get("hardware") or OWN_HARDWARE[case["release"]])


def shape_of(case: dict[str, Any]) -> HostShape:
    """A case's host."""
    major, minor = (int(part) for part in str(case["release"]).split("."))
    host = case["host"]
    return HostShape(
        (major, minor),
        host["numa_nodes"],
        host["cores_per_node"],
        host.get("threads_per_core", 1),
        host.get("follow_cores_per_socket", False),
        prefer_ht=host.get("prefer_ht", False),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_golden_layout_is_predicted_or_named_as_an_alternative(case: dict[str, Any]) -> None:
    """Where the rules are clear the prediction is the case's; where they are not, it is low and names it."""
    expect = case["expect"]

    prediction = predict(shape_of(case), settings_of(case["vm"]), hardware_of(case))

    if "vnuma_nodes" in expect:
        assert expect["vnuma_nodes"] in prediction.acceptable
    if prediction.confidence == "low":
        assert len(prediction.because) > 20
        return
    if "vnuma_nodes" in expect:
        assert prediction.vnuma_nodes == expect["vnuma_nodes"]
    if "node_sizes" in expect:
        assert list(prediction.node_sizes) == expect["node_sizes"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if "clients" in case["expect"]], ids=lambda case: str(case["id"])
)
def test_a_published_number_of_clients_is_predicted(case: dict[str, Any]) -> None:
    """How ESXi places the VM follows from capacity and nodes, whatever the guest is shown."""
    prediction = predict(shape_of(case), settings_of(case["vm"]), hardware_of(case))

    assert len(prediction.clients) == case["expect"]["clients"]
    if "client_sizes" in case["expect"]:
        assert list(prediction.clients) == case["expect"]["client_sizes"]


PARTIAL = yaml.load((DATA / "vnuma_partial.yml").read_text(), yaml.CSafeLoader)["cases"]


@pytest.mark.parametrize(
    ("case", "release"),
    [(case, release) for case in PARTIAL for release in case["releases"]],
    ids=lambda value: value if isinstance(value, str) else str(value["id"]),
)
def test_a_case_of_unknown_settings_is_predicted_or_says_what_was_not_seen(
    case: dict[str, Any], release: str
) -> None:
    """Never sure and wrong; where it is wrong, the reason names what the source leaves open."""
    follow = None if "Numa.FollowCoresPerSocket" in case["unseen"] else False
    host = replace(shape_of({**case, "release": release}), follow_cores_per_socket=follow)
    hardware = hardware_version_of(release)

    prediction = predict(host, settings_of(case["vm"]), hardware, case["unseen"])

    if prediction.vnuma_nodes != case["observed"]:
        assert prediction.confidence == "low"
        assert case["observed"] in prediction.alternatives or "were not read" in prediction.because


def of_16(release: tuple[int, int], per_socket: int = 4, **keys: Any) -> Prediction:
    """16 vCPUs that fit a node, on a host whose options could not be read."""
    vm = settings_of({"vcpus": 16, "cores_per_socket": per_socket, "extra_config": keys.pop("keys", None)})
    return predict(HostShape(release, 2, 16, 2, follow_cores_per_socket=None), vm, 19, **keys)


def test_a_hosts_option_that_could_not_be_read_makes_stated_sockets_less_sure() -> None:
    """From 6.5 on, where following them gives another number; a key of the VM decides before the host."""
    unread = of_16((7, 0))
    assert (unread.vnuma_nodes, unread.confidence, unread.alternatives) == (1, "low", (4,))
    for sure in (
        of_16((7, 0), 1),
        of_16((7, 0), 16),
        of_16((6, 0), 16),
        of_16((7, 0), keys={"numa.vcpu.followcorespersocket": "1"}),
        of_16((7, 0), keys={"numa.vcpu.maxPerVirtualNode": "8"}),
    ):
        assert sure.confidence == "high", sure.because


def test_the_hosts_prefer_ht_counts_threads_unless_the_vm_says_otherwise() -> None:
    """As the VM's own key does; a VM's FALSE decides for itself. Unread, it is a doubt where it matters."""
    wide: dict[str, Any] = {"numCPUs": 24, "numCoresPerSocket": 1}
    host = HostShape((7, 0), 2, 16, 2, prefer_ht=True)

    assert predict(host, wide).node_sizes == (24,)
    assert predict(host, {**wide, "numa.vcpu.preferHT": "FALSE"}).node_sizes == (12, 12)
    assert predict(replace(host, threads_per_core=1), wide).node_sizes == (12, 12)
    unread = predict(replace(host, prefer_ht=None), wide)
    assert (unread.node_sizes, unread.confidence, unread.alternatives) == ((12, 12), "low", (1,))
    sure: dict[str, Any]
    for sure in (
        {"numCPUs": 16, "numCoresPerSocket": 1},
        {**wide, "numa.vcpu.preferHT": "FALSE"},
        {**wide, "numa.vcpu.maxPerVirtualNode": "12"},
    ):
        assert predict(replace(host, prefer_ht=None), sure).confidence == "high"


def test_what_nobody_has_seen_of_a_vm_makes_its_layout_less_sure() -> None:
    """Hot-add only where it would hide something; the keys wherever there may be vNUMA."""
    wide = {"numCPUs": 20, "numCoresPerSocket": 1}
    host = HostShape((7, 0), 2, 16)

    assert predict(host, wide).confidence == "high"
    assert predict(host, wide, unseen=["cpuHotAddEnabled"]).alternatives == (1,)
    assert predict(host, wide, unseen=["extraConfig"]).confidence == "low"
    assert predict(host, {"numCPUs": 8, "numCoresPerSocket": 1}, unseen=["extraConfig"]).confidence == "high"


def test_hot_add_hides_nodes_for_sure_only_where_their_exposure_was_read() -> None:
    """A .vmx file does not show exposeVnumaOnCpuHotadd, which is of hardware version 20."""
    hot: dict[str, Value] = {"numCPUs": 20, "numCoresPerSocket": 10, "cpuHotAddEnabled": True}
    host, unseen = HostShape((8, 0), 2, 16), ["exposeVnumaOnCpuHotadd"]

    unread = predict(host, hot, 20, unseen)

    assert (unread.vnuma_nodes, unread.confidence, unread.alternatives) == (1, "low", (2,))
    assert predict(host, hot, 20).confidence == "high"
    assert predict(host, hot, 19, unseen).confidence == "high"
    assert predict(host, {**hot, "numCPUs": 8, "numCoresPerSocket": 8}, 20, unseen).confidence == "high"
    few: dict[str, Value] = {
        **hot,
        "numCPUs": 8,
        "numCoresPerSocket": 4,
        "numa.vcpu.followcorespersocket": "1",
    }
    assert predict(host, few, 20, unseen).confidence == "high"  # exposed, it is below numa.vcpu.min


@pytest.mark.parametrize(
    ("keys", "others", "said"),
    [
        ({"numa.vcpu.maxPerMachineNode": "5"}, (2,), "maxpermachinenode is 5"),
        ({"numa.vcpu.maxPerClient": "4"}, (3,), "maxperclient is 4"),
        ({"numa.slit.enable": "TRUE"}, (), "numa.slit.enable is set; no rule here covers it"),
    ],
)
def test_a_key_that_no_source_explains_makes_the_layout_less_sure(
    keys: dict[str, Any], others: tuple[int, ...], said: str
) -> None:
    """It names the key, and the number of nodes that the key would give where that is known."""
    vm = settings_of({"vcpus": 10, "extra_config": keys})

    prediction = predict(HostShape((6, 0), 2, 10, 2), vm, 11)

    assert (prediction.vnuma_nodes, prediction.confidence, prediction.alternatives) == (1, "low", others)
    assert said in prediction.because


def test_the_key_of_a_typed_field_is_no_doubt() -> None:
    """vSphere 8 shows coresPerNumaNode among the keys too."""
    vm = {"vcpus": 16, "cores_per_numa_node": 8, "extra_config": {"numa.vcpu.coresPerNode": "8"}}

    prediction = predict(HostShape((8, 0), 2, 16, 2), settings_of(vm), 20)

    assert (prediction.vnuma_nodes, prediction.confidence) == (2, "high")


def test_a_release_that_no_source_covers_makes_every_layout_less_sure() -> None:
    """A mistyped or a future one: the rules are those of the newest known, with low confidence."""
    newer, newest = (
        predict(HostShape(release, 2, 16, 2), settings_of({"vcpus": 16})) for release in ((9, 1), (9, 0))
    )

    assert (newest.confidence, newer.confidence, newer.node_sizes) == ("high", "low", newest.node_sizes)


@pytest.mark.parametrize(("nodes", "vcpus", "sure"), [(2, 6, "high"), (8, 6, "low"), (8, 64, "high")])
def test_how_far_a_small_vm_is_spread_over_many_nodes_is_not_known(nodes: int, vcpus: int, sure: str) -> None:
    """With numa.consolidate FALSE it is both of two, or all that the vCPUs need; else memory decides."""
    seen = predict(
        HostShape((6, 7), nodes, 8),
        {"numCPUs": vcpus, "numCoresPerSocket": 1, "numa.consolidate": "FALSE"},
        14,
    )

    assert seen.confidence == sure


@pytest.mark.parametrize(("release", "update"), [((6, 5), 13_932_383), ((6, 7), 13_006_603)])
def test_a_small_wide_vm_gets_nodes_from_its_update_on(release: tuple[int, int], update: int) -> None:
    """6.5 U3 and 6.7 U2 changed it: their own builds are the first with it; an unknown one may be either."""

    def seen(build: int) -> Prediction:
        return predict(HostShape(release, 2, 4, 1, build=build), {"numCPUs": 6, "numCoresPerSocket": 1})

    assert (seen(update - 1).node_sizes, seen(update - 1).confidence) == ((6,), "high")
    assert (seen(update).node_sizes, seen(update).acceptable) == ((3, 3), (2, 1))
    assert (seen(0).node_sizes, seen(0).acceptable) == ((6,), (1, 2))
