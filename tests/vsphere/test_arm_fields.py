"""Every field of an arm on the releases that have it: set, read back, seen in the guest, restored."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.steps import Steps
from tests.sqlserver.support import server_of
from tests.support.hosts import host_of, vm_of
from tests.support.lab import LabHandle
from tests.vsphere.support import LabFactory, Login
from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.desired_settings import desired_settings
from vnuma.domain.arm.effective import judge
from vnuma.domain.vm.change import as_written, change_back, change_to
from vnuma.domain.vm.facts import GuestTopology
from vnuma.engine.access.connections import sql_server
from vnuma.engine.cell.shape import plan_shape
from vnuma.errors import ArmImpossible, PowerFailed
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance.server import read_topology
from vnuma.sqlserver.instance.server_configuration import SoftNuma, read_soft_numa
from vnuma.store.attempts import get_attempt
from vnuma.vsphere.apply import reconfigure
from vnuma.vsphere.connect import Session
from vnuma.vsphere.power import power_on, shut_down, wait_for_guest
from vnuma.vsphere.read import find_vm, read_host, read_vm

CORES = tuple(range(0, 32, 2))
NODE_1 = tuple(range(32, 64, 2))


@dataclass(frozen=True)
class Case:
    """An arm; the settings that must read back; how many vNUMA nodes the guest must see; the boot's event."""

    arm: dict[str, Any]
    reads: dict[str, Any]
    nodes: int
    event: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The fields besides the topology."""
        return " ".join(str(self.arm[name]) for name in self.arm) or str(self.arm)


EVERYWHERE = (
    Case({"topology": "2x4", "vcpus": 8, "memory_mb": 32768}, {"numCPUs": 8, "memoryMB": 32768}, 1),
    Case({"topology": "1x16", "memory_reservation": "locked"}, {"memoryReservation": 65536}, 1),
    Case({"topology": "1x16", "memory_reservation": 4096}, {"memoryReservation": 4096}, 1),
    Case({"topology": "1x16", "cpu_reservation": "full"}, {"cpuReservation": 16 * 2300}, 1),
    Case({"topology": "1x16", "affinity": "physical_cores"}, {"cpuAffinity": CORES}, 1, {"host_nodes": [0]}),
    Case(
        {"topology": "1x16", "affinity": {"physical_cores": [1]}},
        {"cpuAffinity": NODE_1},
        1,
        {"host_nodes": [1]},
    ),
    Case(
        {"topology": "2x8", "affinity": {"physical_cores": [0, 1], "spare": 1}},
        {"cpuAffinity": (*range(0, 18, 2), *range(32, 48, 2))},
        2,
        {"host_nodes": [0, 1]},
    ),
    Case({"topology": "1x16", "affinity": [*range(17)]}, {"cpuAffinity": tuple(range(17))}, 1),
    Case(
        {"topology": "1x16", "numa_node_affinity": [1]},
        {"numa.nodeAffinity": "1"},
        1,
        {"host_nodes": [1]},
    ),
    Case({"topology": "1x16", "memory_affinity": [1]}, {"memoryAffinity": (1,)}, 1, {"memory_affinity": [1]}),
    Case({"topology": "16x1", "max_per_virtual_node": 4}, {"numa.vcpu.maxPerVirtualNode": "4"}, 4),
    Case({"topology": "2x8", "numa_vcpu_min": 17}, {"numa.vcpu.min": "17"}, 1),
    Case(
        {"topology": "24x1", "vcpus": 24, "prefer_ht": "on"},
        {"numa.vcpu.preferHT": "TRUE"},
        1,
        {"clients": [24]},
    ),
    Case(
        {"topology": "1x16", "numa": {"numa.consolidate": "FALSE"}},
        {"numa.consolidate": "FALSE"},
        1,
        {"clients": [8, 8]},
    ),
    Case({"topology": "2x8", "cpu_hot_add": "on"}, {"cpuHotAddEnabled": True}, 1),
    Case(
        {"topology": "2x8", "follow_cores_per_socket": "on"},
        {"numa.vcpu.followcorespersocket": "1"},
        2,
    ),
    Case({"topology": "1x16", "numa_autosize": "clear"}, {"numa.autosize.cookie": None}, 1),
    Case({"topology": "1x16", "numa_autosize": "keep"}, {}, 1),
    Case(
        {
            "topology": "1x16",
            "latency_sensitivity": "high",
            "memory_reservation": "locked",
            "cpu_reservation": "full",
        },
        {"latencySensitivity": "high"},
        1,
    ),
    Case({"topology": "4x4", "vnuma_nodes": 4}, {"numCoresPerSocket": 4}, 4),
    Case({"topology": "16x1", "vnuma_nodes": 16}, {}, 16),
)
SINCE_6_5 = (
    Case({"topology": "2x8", "follow_cores_per_socket": "off"}, {}, 1),
    Case({"topology": "8x2", "vnuma_nodes": 2}, {}, 2),
    Case({"topology": "4x2", "vcpus": 8, "vnuma_nodes": 2}, {}, 2),
)
SINCE_8 = (
    Case({"topology": "auto", "vcpus": 24}, {"autoCoresPerSocket": True}, 2),
    Case({"topology": "4x4", "cores_per_numa_node": 8}, {"coresPerNumaNode": 8}, 2),
    Case(
        {"topology": "2x8", "cpu_hot_add": "on", "expose_vnuma_on_hot_add": "on"},
        {"exposeVnumaOnCpuHotadd": True},
        2,
    ),
    Case(
        {"topology": "2x8", "cpu_hot_add": "on", "vnuma_nodes": 2},
        {"exposeVnumaOnCpuHotadd": True, "coresPerNumaNode": 8},
        2,
    ),
)

BY_RELEASE = {
    "6.0.0": EVERYWHERE,
    "6.5.0": EVERYWHERE + SINCE_6_5,
    "7.0.3": EVERYWHERE + SINCE_6_5,
    "8.0.3": EVERYWHERE + SINCE_6_5 + SINCE_8,
}


@dataclass(frozen=True)
class SqlCase:
    """An arm, and what SQL Server must show of it: CPU nodes, soft-NUMA, the degree of each statement."""

    arm: dict[str, Any]
    cpu_nodes: int
    soft_numa: bool
    dop: int


SQL_SERVERS_OWN = (
    SqlCase({"topology": "1x16", "name": "whole", "soft_numa": "off"}, cpu_nodes=1, soft_numa=False, dop=1),
    SqlCase({"topology": "1x16", "name": "four", "maxdop": 4}, cpu_nodes=2, soft_numa=True, dop=4),
)
"""Fields that set nothing on the VM, but in SQL Server or in its statements, whatever ESXi's release."""
SQL_FIELDS = {"soft_numa", "maxdop"}
NO_SETTING = {"name", "workload"}


@pytest.mark.parametrize("release", BY_RELEASE)
@pytest.mark.parametrize("name", sorted(Arm.model_fields.keys() - SQL_FIELDS - NO_SETTING))
def test_every_field_has_its_case_on_each_release_that_has_it(name: str, release: str) -> None:
    """Otherwise the field is refused there, with an alternative."""
    if any(name in case.arm for case in BY_RELEASE[release]):
        return
    later = next(case.arm for cases in BY_RELEASE.values() for case in cases if name in case.arm)
    alone = Arm.model_validate({"topology": later["topology"], name: later[name]})
    with pytest.raises(ArmImpossible):
        desired_settings(alone, vm_of(), host_of(release=release))


@pytest.mark.parametrize(
    "release",
    ["8.0.3", *(pytest.param(name, marks=pytest.mark.long) for name in BY_RELEASE if name != "8.0.3")],
)
def test_every_field_of_sql_server_is_set_read_back_seen_and_restored(
    lab: LabFactory, tmp_path: Path, release: str
) -> None:
    """By a run's own steps: SQL Server shows each arm's own, in its views, its plans and its plan cache."""
    assert {name for case in SQL_SERVERS_OWN for name in case.arm} >= SQL_FIELDS
    running = lab(esxi={"version": release, "build": "1"})
    design = {"blocks": 1, "order": "fixed", "a_a": False, "warmups": 0, "iterations": 1}
    arms = [*(case.arm for case in SQL_SERVERS_OWN), "1x16"]
    steps = Steps.prepared(tmp_path / "home", running, arms=arms, design=design)
    before = read_soft_numa_of(steps)
    context = steps.take()
    for case in SQL_SERVERS_OWN:
        attempt = steps.measure(context)
        with steps.store.read() as connection:
            seen: Any = get_attempt(connection, attempt.id).effective
        executions: list[Any] = [
            item.sample.execution for item in steps.samples if item.attempt_id == attempt.id
        ]
        assert (attempt.arm, seen["guest"]["sql_cpu_nodes"]) == (case.arm["name"], case.cpu_nodes)
        assert read_soft_numa_of(steps) == SoftNuma(case.soft_numa, case.soft_numa), case
        assert [execution["dop"] for execution in executions] == [case.dop], case
    done = steps.restore()

    assert done.equal == done.settings
    assert read_soft_numa_of(steps) == before


def read_soft_numa_of(steps: Steps) -> SoftNuma | None:
    """What SQL Server has now."""
    with connect(sql_server(steps.target)) as connection:
        return read_soft_numa(connection)


@pytest.mark.parametrize(
    ("release", "cases"),
    [
        pytest.param(*one, marks=() if one[0] in ("6.0.0", "8.0.3") else pytest.mark.long, id=one[0])
        for one in BY_RELEASE.items()
    ],
)
def test_every_field_is_set_read_back_seen_by_the_guest_and_restored(
    lab: LabFactory, login: Login, release: str, cases: tuple[Case, ...]
) -> None:
    """The guest sees what was predicted and intended, and the VM ends as it began."""
    running = lab(
        esxi={"version": release, "build": "1"},
        vms=[{"name": "sql16", "power": "off"}],
        boot={"tools_seconds": 0.0, "sql_seconds": 0.0, "shutdown_seconds": 0.0},
    )
    session = login(running)
    before = read_vm(session, find_vm(session, "sql16"))
    for count, case in enumerate(cases, start=1):
        arm = Arm.model_validate(case.arm)
        after, guest, event = _boot(running, session, arm, count)

        read = {name: after.get(name) for name in case.reads}
        assert read == case.reads, case.name
        assert guest.numa_nodes == case.nodes, (case.name, event["rule"])
        assert {name: event[name] for name in case.event} == case.event, case.name
        now = read_vm(session, find_vm(session, "sql16")).settings
        assert not change_back(now, before.settings), case.name
        assert {name: as_written(now, name) for name in now} == {
            name: as_written(before.settings, name) for name in before.settings
        }, case.name


SET_BEFORE = {
    "cpu_affinity": [*range(20)],
    "reservation_locked": True,
    "cores_per_socket": 8,
    "cores_per_numa_node": 8,
    "cpu_hot_add": True,
    "extra_config": {
        "numa.nodeAffinity": "1",
        "numa.vcpu.maxPerVirtualNode": "4",
        "numa.vcpu.min": "17",
        "numa.vcpu.PreferHT": "TRUE",
        "numa.consolidate": "FALSE",
        "numa.autosize.cookie": "160082",
        "numa.autosize.vcpu.maxPerVirtualNode": "8",
    },
}
HANDED_BACK = {
    "topology": "1x16",
    "affinity": "none",
    "numa_node_affinity": "none",
    "memory_reservation": "none",
    "cpu_hot_add": "off",
    "cores_per_numa_node": "auto",
    "max_per_virtual_node": "auto",
    "numa_vcpu_min": "auto",
    "prefer_ht": "auto",
    "numa": {"numa.consolidate": "auto"},
}


ONLY_8 = {"cores_per_numa_node"}


@pytest.mark.parametrize("release", BY_RELEASE)
def test_what_the_vm_has_of_its_own_is_kept_handed_back_and_restored(
    lab: LabFactory, login: Login, release: str
) -> None:
    """`keep` leaves every setting; `auto` and `none` leave ESXi its choice; the VM ends as it was."""
    here = {name: value for name, value in SET_BEFORE.items() if release == "8.0.3" or name not in ONLY_8}
    running = lab(
        esxi={"version": release, "build": "1"},
        vms=[{"name": "sql16", "power": "off", **here}],
        boot={"tools_seconds": 0.0, "sql_seconds": 0.0, "shutdown_seconds": 0.0},
    )
    session = login(running)
    before = read_vm(session, find_vm(session, "sql16"))
    keep = {"topology": "2x8", "follow_cores_per_socket": "keep", "numa_autosize": "keep"}
    host = read_host(session, session.host(before.host_moid))

    assert not plan_shape(Arm.model_validate(keep), before, host).change
    after, guest, _ = _boot(running, session, Arm.model_validate(HANDED_BACK), 1)

    assert [key for key in after if key.lower().startswith("numa.") and "follow" not in key] == []
    assert (after["cpuAffinity"], after["memoryReservation"], after["cpuHotAddEnabled"]) == ((), 0, False)
    assert after["autoCoresPerNumaNode"] is (True if release == "8.0.3" else None)
    assert guest.numa_nodes == 1
    assert read_vm(session, find_vm(session, "sql16")).settings == before.settings


def _boot(
    running: LabHandle, session: Session, arm: Arm, count: int
) -> tuple[dict[str, Any], GuestTopology, dict[str, Any]]:
    """One power-on in an arm's shape, judged as a run judges it; then the VM is restored."""
    ref = find_vm(session, "sql16")
    vm = read_vm(session, ref)
    host = read_host(session, session.host(vm.host_moid))
    planned = plan_shape(arm, vm, host)
    after = reconfigure(session, ref, planned.change, seen=vm)
    power_on(session, ref, host_moid=vm.host_moid)
    wait_for_guest(session, ref, timeout_s=20)
    running.wait_for("sql_listening", count=count)
    with connect(server_of(running)) as connection:
        guest = read_topology(connection)
    judgement = judge(arm, planned.prediction, guest)
    assert judgement.counts, (arm, judgement.mismatches, planned.prediction)
    assert guest.numa_nodes in planned.prediction.acceptable
    assert guest.sql_cpu_nodes == planned.prediction.sql_cpu_nodes
    shut_down(session, ref, timeout_s=20)
    now = read_vm(session, ref)
    assert plan_shape(arm, now, host).change.desired.keys() <= {
        "numa.autosize.cookie",
        "numa.autosize.vcpu.maxPerVirtualNode",
    }
    reconfigure(session, ref, change_back(now.settings, vm.settings), seen=now)
    return dict(after.settings), guest, running.wait_for("boot", count=count)


def test_high_latency_sensitivity_without_its_reservations_does_not_power_on(
    lab: LabFactory, login: Login
) -> None:
    """The lab refuses it as ESXi does; vnuma refuses the arm before that."""
    running = lab(vms=[{"name": "sql16", "power": "off"}])
    session = login(running)
    ref = find_vm(session, "sql16")
    vm = read_vm(session, ref)
    arm = Arm.model_validate({"topology": "1x16", "memory_reservation": "locked", "cpu_reservation": 1000})
    planned = plan_shape(arm, vm, read_host(session, session.host(vm.host_moid)))
    wanted = {**planned.change.desired, "latencySensitivity": "high"}
    reconfigure(session, ref, change_to(vm.settings, wanted))

    with pytest.raises(PowerFailed):
        power_on(session, ref, host_moid=vm.host_moid)
