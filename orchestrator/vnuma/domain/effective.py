"""Intended against effective: does this boot count for its arm?"""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.domain.arm import Arm
from vnuma.domain.facts import GuestTopology
from vnuma.domain.prediction import Prediction
from vnuma.domain.topology import Topology


@dataclass(frozen=True)
class Judgement:
    """`mismatches` are sentences; none means that the boot counts. `not_evaluated` could not be seen."""

    mismatches: tuple[str, ...] = ()
    not_evaluated: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether what the guest sees is what the arm asked for."""
        return not self.mismatches


def judge(arm: Arm, prediction: Prediction, guest: GuestTopology) -> Judgement:
    """Compare what SQL Server sees in the guest with what the arm intends."""
    wrong: list[str] = []
    unseen: list[str] = []
    if arm.vcpu_count and guest.vcpus != arm.vcpu_count:
        wrong.append(f"the guest has {guest.vcpus} CPUs, the arm needs {arm.vcpu_count}")
    if guest.sockets is None or guest.cores_per_socket is None:
        unseen.append("sockets: this SQL Server version does not show them (2016 SP2 and later do)")
    elif isinstance(arm.topology, Topology) and arm.topology != Topology(
        guest.sockets, guest.cores_per_socket
    ):
        wrong.append(
            f"the guest shows {guest.sockets}x{guest.cores_per_socket}, the arm needs {arm.topology}"
        )
    if arm.memory_affinity not in ("keep", "none"):
        unseen.append(
            "memory affinity: it reads back, but no evidence from the host shows that ESXi honours it"
        )
    wrong += _nodes(arm, prediction, guest)
    if guest.visible_offline:
        total = guest.visible_offline + guest.visible_online
        wrong.append(
            f"SQL Server uses {guest.visible_online} of {total} schedulers (edition or affinity: rule S04)"
        )
    return Judgement(tuple(wrong), tuple(unseen))


def _nodes(arm: Arm, prediction: Prediction, guest: GuestTopology) -> list[str]:
    wanted = (arm.vnuma_nodes,) if arm.vnuma_nodes else prediction.acceptable
    if guest.numa_nodes in wanted:
        return []
    seen = f"{guest.numa_nodes} vNUMA node" + ("s" if guest.numa_nodes != 1 else "")
    return [f"the guest has {seen}, the arm needs {' or '.join(map(str, wanted))}"]
