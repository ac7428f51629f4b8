"""Compare a boot with its arm: is it valid?

vSphere's read-back, the guest's view in SQL Server and the boot's vmware.log are compared with the arm and
the release's rules. The first two decide; the log only explains. What cannot be read is not evaluated, which
is neither pass nor fail.
"""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.domain.arm.arm import Arm
from vnuma.domain.topology.evidence import LOG_WORDS, LogEvidence
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.topology.topology import Topology
from vnuma.domain.vm.facts import GuestTopology
from vnuma.logs.errorlog import ErrorLog
from vnuma.logs.vmware import VmwareLog
from vnuma.words.plain_text import counted


@dataclass(frozen=True)
class Judgement:
    """`mismatches` are sentences; a boot without any is valid. `not_evaluated` could not be read.

    `notes` are informational.
    """

    mismatches: tuple[str, ...] = ()
    not_evaluated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether the guest sees what the arm asked for."""
        return not self.mismatches


def judge(
    arm: Arm,
    prediction: Prediction,
    guest: GuestTopology,
    *,
    start: ErrorLog | None = None,
    evidence: LogEvidence | None = None,
) -> Judgement:
    """Compare the guest's view in SQL Server with what the arm intends.

    `start` is from SQL Server's error log at its start, `evidence` from vmware.log.
    """
    wrong: list[str] = []
    unseen: list[str] = []
    if arm.vcpu_count and guest.vcpus != arm.vcpu_count:
        wrong.append(f"the guest has {guest.vcpus} CPUs, the arm needs {arm.vcpu_count}")
    sockets = _sockets(guest, start)
    if sockets is None:
        unseen.append("sockets: the guest does not show them (SQL Server 2016 SP2 and later do)")
    elif isinstance(arm.topology, Topology) and sockets != arm.topology:
        wrong.append(f"the guest shows {sockets}, the arm needs {arm.topology}")
    if arm.memory_affinity not in ("keep", "none"):
        unseen.append("memory affinity: it reads back, but vnuma cannot tell whether ESXi honours it")
    log = evidence.evaluated if evidence else None
    wrong += _nodes(arm, prediction, guest, log)
    if guest.visible_offline:
        total = guest.visible_offline + guest.visible_online
        wrong.append(
            f"SQL Server uses {guest.visible_online} of {total} schedulers (edition or affinity: rule S04)"
        )
    if evidence and evidence.why_not:
        unseen.append(f"{LOG_WORDS} {evidence.why_not}")
    return Judgement(tuple(wrong), tuple(unseen), tuple(_notes(prediction, guest, log)))


def _sockets(guest: GuestTopology, start: ErrorLog | None) -> Topology | None:
    """Sockets and cores per socket from the DMV, or from the error log, which has them since 2012."""
    for seen in (guest, start):
        if seen and seen.sockets is not None and seen.cores_per_socket is not None:
            return Topology(seen.sockets, seen.cores_per_socket)
    return None


def _nodes(arm: Arm, prediction: Prediction, guest: GuestTopology, log: VmwareLog | None) -> list[str]:
    wanted = (arm.vnuma_nodes,) if arm.vnuma_nodes else prediction.acceptable
    if guest.numa_nodes in wanted:
        return []
    needed = " or ".join(map(str, wanted))
    return [
        f"the guest has {counted(guest.numa_nodes, 'vNUMA node')}, the arm needs {needed}"
        f" ({'; '.join(_why(prediction, guest, log))})"
    ]


def _why(prediction: Prediction, guest: GuestTopology, log: VmwareLog | None) -> list[str]:
    """Explanations for the guest's node count."""
    if prediction.vnuma_nodes == guest.numa_nodes:
        words = [f"as predicted: {prediction.because}"]
    else:
        words = [
            f"predicted {prediction.vnuma_nodes}, confidence {prediction.confidence}: {prediction.because}"
        ]
    if log and log.forced_uma:
        words.append("vmware.log says that CPU hot-add forces one node")
    elif log:
        words.append("vmware.log of this boot agrees with the guest")
    return words


def _notes(prediction: Prediction, guest: GuestTopology, log: VmwareLog | None) -> list[str]:
    notes = []
    if guest.numa_nodes != prediction.vnuma_nodes:
        notes.append(
            f"the guest has {counted(guest.numa_nodes, 'vNUMA node')}, predicted were "
            f"{prediction.vnuma_nodes} (confidence {prediction.confidence})"
        )
    if log and log.suggested_cores_per_socket:
        notes.append(f"ESXi suggests {log.suggested_cores_per_socket} cores per socket (vmware.log)")
    return notes
