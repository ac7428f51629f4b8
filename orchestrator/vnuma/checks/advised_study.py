"""A study file that tests the recommended topologies on the real host."""

from __future__ import annotations

from vnuma.checks.advice import Advice, Candidate, Worth
from vnuma.domain.topology.forecast import Forecast

ARMS = 4


def study_text(advice: Advice, *, vm: str, name: str, memory_mb: int) -> str:
    """A study of the best candidates as YAML, with the reasons as comments. Raises ValueError for fewer than
    two.
    """
    arms = arms_of(advice)
    if len(arms) < 2:
        raise ValueError(
            "only one topology with this number of vCPUs can run on every host, so there is nothing to "
            "compare"
        )
    shape = arms[0].topology
    listed = "\n".join(f"  # {arm.reasons[0]}\n  - {_arm(arm)}" for arm in arms)
    return f"""\
# Topologies worth comparing for {shape.vcpus} vCPUs and {memory_mb // 1024} GB, best guess first.
# Written by vnuma advise. The VM should be a test clone.
name: {name}
title: Topologies of a {shape.vcpus}-vCPU SQL Server VM
vm: {vm}  # the name of a host in the inventory
vcpus: {shape.vcpus}
reference: {shape}
arms:
{listed}
all_arms:
  affinity: none  # ESXi's NUMA scheduler places the VM
  memory_mb: {memory_mb}
  memory_reservation: locked
design:
  stop: decided  # an arm leaves when its verdict is certain
  max_blocks: 12
  seed: 1
workload:
  name: cross_join
  sizes: [1000, 2000, 3000]
  forms: [server, client]
"""


def _arm(arm: Candidate) -> str:
    """Its nodes are stated where they are its sockets; otherwise what the release predicts counts."""
    if arm.nodes != arm.topology.sockets:
        return str(arm.topology)
    return f"{{topology: {arm.topology}, vnuma_nodes: {arm.nodes}}}"


def arms_of(advice: Advice) -> tuple[Candidate, ...]:
    """The candidates to test: the good ones; with fewer than two, also the least bad that can run."""
    good = advice.worth(Worth.HAVING, Worth.TESTING)[:ARMS]
    spare = [one for one in advice.worth(Worth.AVOIDING) if _can_run(one)]
    return good if len(good) > 1 else (*good, *spare)[:2]


def _can_run(one: Candidate) -> bool:
    """Whether it powers on, with equal nodes and the stated vCPUs."""
    return all(_comparable(seen) for seen in one.forecasts) and one.topology.cores_per_socket > 1


def _comparable(seen: Forecast) -> bool:
    even = len(set(seen.prediction.node_sizes)) == 1
    return even and not seen.impossible and seen.usable_cores == seen.topology.vcpus
