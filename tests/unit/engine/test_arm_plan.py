"""Arms before they are run: what the guest would show, and which arms nobody could tell apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts import host_of, vm_of
from tests.unit.workloads.linux import MACHINE
from vnuma.domain.study.study import Study
from vnuma.engine.preflight.plan import (
    ArmPlan,
    IndistinguishableArms,
    distinguished_by_workload,
    doubts,
    own_client_findings,
    plan_arm,
    same_nodes,
    same_to_the_guest,
    shared_client_findings,
)
from vnuma.workloads.shell import BOOT


def planned(*arms: Any, release: str = "6.0.0", workload: str = "cross_join", **common: Any) -> list[ArmPlan]:
    """The plans of these arms on the paper\'s host, whose options were read."""
    first = arms[0] if isinstance(arms[0], str) else arms[0].get("name", arms[0]["topology"])
    study = Study.model_validate(
        {
            "name": "s",
            "vms": ["sql16"],
            "vcpus": 16,
            "reference": first,
            "arms": arms,
            "all_arms": common,
            "workload": {"name": workload},
        }
    )
    host = replace(host_of(release=release), advanced={})
    return [plan_arm(study, label, vm_of(), host) for label in study.labels]


@pytest.mark.parametrize(
    ("hosts", "together", "found"),
    [(["a"], True, 0), (["a", "a"], False, 0), (["a", "a"], True, 1), (["a", "b"], False, 1), ([], True, 0)],
)
def test_a_client_that_loads_several_vms_at_once_is_found(
    hosts: list[str], together: bool, found: int
) -> None:
    """VMs of one host take turns, unless the study measures them together."""
    assert len(list(shared_client_findings("driver", hosts, together=together))) == found


@pytest.mark.parametrize(
    ("client", "guest", "found"),
    [("other", "b", 0), ("", "", 0), ("b", "b", 1), ("here", "b", 1), ("here", "here", 1)],
)
def test_a_client_that_is_part_of_what_is_measured_is_blocked_once(
    client: str, guest: str, found: int
) -> None:
    """The guest, this machine, or both in one; machines without a boot id are not compared."""
    here = {"here": Path(BOOT).read_text("ascii").strip()}
    machine, measured = (replace(MACHINE, boot=here.get(boot, boot)) for boot in (client, guest))

    assert len(list(own_client_findings("loadgen", machine, measured))) == found


def test_arms_that_differ_on_the_host_only_look_the_same_inside() -> None:
    """The guest sees no affinity: the settings that differ are named."""
    arms = planned("2x8", {"topology": "2x8", "name": "pinned", "affinity": "physical_cores"})

    assert same_to_the_guest(arms) == [IndistinguishableArms(("2x8", "pinned"), ("cpuAffinity",))]
    assert same_nodes(arms) == []


def test_sockets_without_nodes_are_not_distinguishable_by_numa() -> None:
    """The paper's 1x16 and 16x1 have one node each; their sockets differ."""
    arms = planned("1x16", "2x8", "16x1")

    assert same_to_the_guest(arms) == []
    assert same_nodes(arms) == [IndistinguishableArms(("1x16", "16x1"), ("sockets",))]


def test_soft_numa_and_maxdop_tell_arms_apart() -> None:
    """One topology, split by SQL Server or not: CPU nodes differ, memory nodes do not."""
    arms = planned(
        {"topology": "1x16", "soft_numa": "on"},
        {"topology": "1x16", "name": "whole", "soft_numa": "off"},
        {"topology": "1x16", "name": "parallel", "soft_numa": "off", "maxdop": 8},
    )

    assert [arm.view.sql_cpu_nodes for arm in arms if arm.view] == [2, 1, 1]
    assert same_nodes(arms) == [
        IndistinguishableArms(("1x16", "whole", "parallel"), ("SQL CPU nodes", "MAXDOP"))
    ]


def by_workload(name: str, *factors: dict[str, Any]) -> list[ArmPlan]:
    """Arms of one shape that differ in these factors of the workload, each named by its first value."""
    arms = [{"topology": "2x8", "name": str(next(iter(one.values()))), "workload": one} for one in factors]
    return planned(*arms, workload=name)


@pytest.mark.parametrize(
    ("name", "factor", "values"),
    [
        ("reporting_streams", "placement", ("local", "remote")),
        ("log_spinlock", "workers", ("same_node", "other_node")),
    ],
)
def test_arms_that_use_their_nodes_differently_are_distinguished_by_that(
    name: str, factor: str, values: tuple[str, str]
) -> None:
    """VMs of one shape, whose nodes do different things: nothing is said against their difference."""
    arms = by_workload(name, *({factor: value} for value in values))

    assert same_to_the_guest(arms) == same_nodes(arms) == []
    assert distinguished_by_workload(arms) == [IndistinguishableArms(values, (factor,))]


def test_factors_that_choose_no_node_are_named_next_to_the_same_nodes() -> None:
    """Durability and a hint differ inside the guest, and not by NUMA."""
    logs = by_workload("log_spinlock", {"durability": "full"}, {"durability": "delayed"})
    joins = by_workload("cross_join", {"spool": "allowed"}, {"spool": "avoided"})

    for arms, factor in ((logs, "durability"), (joins, "spool")):
        assert same_to_the_guest(arms) == distinguished_by_workload(arms) == []
        assert [alike.differing for alike in same_nodes(arms)] == [(factor,)]


def test_a_setting_that_the_vm_has_already_makes_no_difference() -> None:
    """Asked for or kept, it is the same VM."""
    arms = planned("2x8", {"topology": "2x8", "name": "set", "memory_mb": 65536})

    assert same_to_the_guest(arms) == [IndistinguishableArms(("2x8", "set"), ())]


def test_an_impossible_arm_has_its_rule_and_what_helps() -> None:
    """The others are planned all the same."""
    other, impossible = planned("2x8", {"topology": "4x4", "vnuma_nodes": 2})

    assert other.prediction is not None
    assert (impossible.rule, impossible.prediction) == ("T02", None)
    assert impossible.fix


def test_low_confidence_says_why_and_for_which_arms() -> None:
    """One reason, all its arms."""
    found = doubts(planned("1x16", "2x8", "4x4"))

    assert found == {
        "ESXi up to 6.0: one node per socket; or one in all, because the VM fits a node": ["2x8", "4x4"]
    }


def test_cpu_affinity_makes_several_nodes_less_sure() -> None:
    """No source says whether they are still shown; one node stays one."""
    found = doubts(planned("1x16", "2x8", release="7.0.3", affinity="physical_cores"))

    assert list(found.values()) == [["2x8"]]


def test_a_count_that_the_settings_surely_miss_is_impossible() -> None:
    """Sockets that are not followed cannot give the nodes that the arm states."""
    arm = {"topology": "2x8", "vnuma_nodes": 2, "follow_cores_per_socket": "off"}
    (only,) = planned(arm, release="7.0.3")

    assert only.rule == "T04"
