"""What each arm asked for, was predicted and was seen to have; a workload's own evidence about each boot."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vnuma.domain.topology.topology import Topology
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Attempt, CellState, Outcome, Vm
from vnuma.words.bounded_json import mapping
from vnuma.words.plain_text import counted, listed


@dataclass(frozen=True)
class ArmTopology:
    """The three topologies of one arm on one VM.

    Node counts are those of all valid boots, each with its number of boots; sizes are the last boot's. Empty
    or None: unknown.
    """

    arm: str
    intended: Topology | str
    """As in the study: sockets x cores per socket, or `auto`."""
    shape: Topology | None
    """The sockets to draw: the intended ones, or ESXi's choice where known."""
    vcpus: int
    read_back: tuple[str, ...]
    predicted: tuple[int, ...]
    alternatives: tuple[int, ...]
    confidence: str
    because: str
    seen: tuple[tuple[int, int], ...]
    seen_sizes: tuple[int, ...]
    sql_nodes: tuple[tuple[int, int], ...]
    sql_sizes: tuple[int, ...]
    logged: tuple[tuple[str, int], ...]
    """From vmware.log, as "2, 2 parts on the host", with the number of boots whose log is evidence."""
    logged_sizes: tuple[int, ...]
    physical_sizes: tuple[int, ...]
    """vCPUs of each physical domain (NUMA client) on which the log placed the VM."""
    counted: int
    planned: int
    not_evaluated: tuple[str, ...]
    notes: tuple[str, ...]
    pages: tuple[float, ...]
    """Each boot's share of memory-optimised pages on the vNUMA node with most of them."""

    @property
    def pages_words(self) -> str:
        """The tables' placement, as in "88 to 91% on one node"."""
        if not self.pages:
            return "not known"
        low, high = (f"{share * 100:.0f}" for share in (min(self.pages), max(self.pages)))
        return f"{low}% on one node" if low == high else f"{low} to {high}% on one node"

    @property
    def predicted_words(self) -> str:
        """As in "2 (low; else 1)"."""
        if not self.predicted:
            return "not stored"
        other = f"; else {listed([str(n) for n in self.alternatives], 'or')}" if self.alternatives else ""
        return f"{len(self.predicted)} ({self.confidence}{other})"

    @property
    def seen_words(self) -> str:
        """The node counts that the guest showed."""
        return _counts(self.seen)

    @property
    def sql_words(self) -> str:
        """SQLOS CPU nodes, soft-NUMA included."""
        return _counts(self.sql_nodes)

    @property
    def log_words(self) -> str:
        """Nodes and physical domains in vmware.log, and how many boots had a valid log."""
        boots = sum(number for _, number in self.logged)
        if not boots:
            return "not evaluated"
        text = "; ".join(f"{words} ({counted(n, 'boot')})" for words, n in self.logged)
        if len(self.logged) == 1:
            text = self.logged[0][0]
        return (
            text
            if boots >= self.counted
            else f"{text}; {self.counted - boots} of {self.counted} not evaluated"
        )


def topologies_of(loaded: LoadedRun, vm: Vm) -> list[ArmTopology]:
    """The study's arms on this VM; an arm that keeps a machine as it is has no shape."""
    shaped = [label for label in loaded.study.labels if loaded.study.arm(label).topology != "keep"]
    return [_arm(loaded, vm, label) for label in shaped]


def _arm(loaded: LoadedRun, vm: Vm, label: str) -> ArmTopology:
    arm = loaded.study.arm(label)
    valid = [item for item in loaded.attempts_of(vm, Outcome.VALID) if item.arm == label]
    mine = [cell for cell in loaded.due_cells(vm) if cell.arm == label]
    tried = [item.predicted for item in loaded.attempts_of(vm) if item.arm == label]
    predicted: Mapping[str, Any] = next((item for item in reversed(tried) if isinstance(item, Mapping)), {})
    guests = [guest for item in valid if (guest := mapping(mapping(item.effective).get("guest")))]
    last = guests[-1] if guests else {}
    logs = [log for log in (_log(item) for item in valid) if log]
    last_log = logs[-1] if logs else {}
    pages = loaded.attempt_facts(vm, "memory", "xtp_pages_kb")
    return ArmTopology(
        arm=label,
        intended=arm.topology,
        shape=arm.topology if isinstance(arm.topology, Topology) else _chosen(last),
        vcpus=arm.vcpu_count or loaded.study.vcpus or 0,
        read_back=tuple(dict.fromkeys(_read_back(item) for item in valid)),
        predicted=tuple(predicted.get("node_sizes", ())),
        alternatives=tuple(predicted.get("alternatives", ())),
        confidence=str(predicted.get("confidence", "")),
        because=str(predicted.get("because", "")),
        seen=tuple(sorted(Counter(int(guest["numa_nodes"]) for guest in guests).items())),
        seen_sizes=_sizes(last, "memory_node_id"),
        sql_nodes=tuple(sorted(Counter(int(guest["sql_cpu_nodes"]) for guest in guests).items())),
        sql_sizes=_sizes(last, "node_id"),
        logged=tuple(sorted(Counter(_log_words(log) for log in logs).items())),
        logged_sizes=tuple(last_log.get("node_sizes", ())),
        physical_sizes=tuple(last_log.get("physical_sizes", ())),
        counted=sum(cell.state is CellState.VALID for cell in mine),
        planned=len(mine),
        pages=tuple(
            max(kilobytes) / sum(kilobytes)
            for kilobytes in (list(mapping(pages.get(item.id)).values()) for item in valid)
            if sum(kilobytes) > 0
        ),
        not_evaluated=_texts(valid, "not_evaluated"),
        notes=_texts(valid, "notes"),
    )


def _chosen(guest: Mapping[str, Any]) -> Topology | None:
    """The sockets seen in the guest; None if its SQL Server does not show them."""
    sockets, cores = guest.get("sockets"), guest.get("cores_per_socket")
    return Topology(int(sockets), int(cores)) if sockets and cores else None


def _log(attempt: Attempt) -> Mapping[str, Any]:
    """The boot's log if it is evidence of that boot."""
    log = mapping(mapping(attempt.effective).get("log"))
    return log if log and log.get("not_evaluated") is None else {}


def _log_words(log: Mapping[str, Any]) -> str:
    domains = log.get("physical_domains")
    return f"{log.get('vnuma_nodes')}" + (f", {counted(domains, 'part')} on the host" if domains else "")


def _texts(attempts: Sequence[Attempt], key: str) -> tuple[str, ...]:
    """The distinct texts of the boots."""
    return tuple(dict.fromkeys(text for item in attempts for text in mapping(item.effective).get(key, ())))


def _sizes(guest: Mapping[str, Any], group: str) -> tuple[int, ...]:
    """vCPUs in each of SQL Server's nodes, grouped by memory node or by CPU node."""
    sizes: Counter[int] = Counter()
    for node in guest.get("nodes", ()):
        sizes[node[group]] += node["online_schedulers"]
    return tuple(size for _, size in sorted(sizes.items()))


def _read_back(attempt: Attempt) -> str:
    """vSphere's own sockets x cores after the change."""
    settings = mapping(attempt.effective).get("vsphere") or {}
    vcpus, cores = settings.get("numCPUs"), settings.get("numCoresPerSocket")
    return str(Topology(vcpus // cores, cores)) if vcpus and cores else "not stored"


def _counts(seen: Sequence[tuple[int, int]]) -> str:
    if not seen:
        return "not known"
    if len(seen) == 1:
        return str(seen[0][0])
    return ", ".join(f"{nodes} ({counted(boots, 'boot')})" for nodes, boots in seen)


SCOPE = "workload"
LONGEST = 160
"""Longer texts are folded."""


@dataclass(frozen=True)
class Verified:
    """One key: each distinct value with its boots, as in "12 boots of 1x16, 2x8"."""

    key: str
    values: tuple[tuple[str, str], ...]

    @property
    def folded(self) -> bool:
        """Whether it is long, or differs from boot to boot."""
        return len(self.values) > 1 or any(len(text) > LONGEST for _, text in self.values)


def verified(loaded: LoadedRun, vm: Vm) -> list[Verified]:
    """Every fact that the workload stored with this VM's valid boots."""
    arms = {attempt.id: attempt.arm for attempt in loaded.attempts_of(vm, Outcome.VALID)}
    boots: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for fact in loaded.facts:
        if fact.scope == SCOPE and fact.vm_id == vm.id and fact.attempt_id in arms:
            boots[fact.key][_text(fact.value)].append(arms[fact.attempt_id])
    replicate = loaded.result.design.replicate
    return [
        Verified(
            key,
            tuple(
                (f"{counted(len(mine), replicate)} of {', '.join(dict.fromkeys(mine))}", text)
                for text, mine in values.items()
            ),
        )
        for key, values in sorted(boots.items())
    ]


def _text(value: object) -> str:
    """A document as "name: value; name: value", with nested parts as JSON."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_text(item)}" for name, item in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
