"""Plan a study whose VMs several nodes reach: each node plans its own VMs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vnuma.engine.access.inventory import nodes_of
from vnuma.engine.access.target import Target
from vnuma.engine.mesh.control import ask_node, have_done
from vnuma.engine.mesh.node_files import controller_socket
from vnuma.engine.mesh.request import EQUAL_VERSIONS, error_from, request_about, send_refusals
from vnuma.engine.preflight.plan_by_kind import plan_all
from vnuma.engine.preflight.target_plan import TargetPlan
from vnuma.engine.preflight.vm_plan import VmPlan
from vnuma.engine.run.start import Asking, Prepared, client_of, refuse_unprepared
from vnuma.errors import EnvironmentProblem, InputError
from vnuma.store.open import Store
from vnuma.store.runs import list_runs
from vnuma.store.types import iso

PREPARE_S = 3600
"""Time limit for a node's preparation, in seconds: it first restores what a dead run left, with shutdowns."""

Ask = Callable[[Path, str, dict[str, Any]], dict[str, Any]]
"""Asks a node at the controller's daemon, by its name; returns the answer."""

_PREPARED: Ask = partial(have_done, limit_s=PREPARE_S)

PLANS: TypeAdapter[dict[str, VmPlan]] = TypeAdapter(dict[str, VmPlan])
"""The encoding of plans in transit."""


@dataclass(frozen=True)
class Planned:
    """Plans in the study's order; the clients of VMs that nodes call; what nodes restored before."""

    plans: dict[str, TargetPlan]
    clients: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def plan_everywhere(asking: Asking) -> dict[str, TargetPlan]:
    """Plan the study on every VM from where it is reached. Changes nothing.

    Raises what `plan_all` raises, here or on a node, and EnvironmentProblem for an unreachable node.
    """
    return _planned(asking, {"ask": "plan"}, ask_node).plans


def prepare_everywhere(asking: Asking, store: Store) -> tuple[Prepared, list[str]]:
    """Plan for a run, refused if anything blocks; also what nodes restored after a dead run.

    Raises as `plan_everywhere` and `refuse_unprepared` do; EnvironmentProblem for a node with another store.
    """
    if asking.nodes and store.place.is_sqlite:
        name, node = next(iter(asking.nodes.items()))
        raise EnvironmentProblem(
            f"{name} is measured by the node {node}, which cannot reach the store {store.place}: "
            "sites share one PostgreSQL.",
            fix="export VNUMA_STORE=postgresql://USER@HOST/vnuma on the controller too: docs/store.md.",
        )
    planned = _planned(asking, {"ask": "prepare", "newest": newest(store)}, _PREPARED)
    client = client_of(asking.here)
    refuse_unprepared(planned.plans)
    return Prepared(asking, planned.plans, client, planned.clients), planned.said


def newest(store: Store) -> list[str] | None:
    """Name and time of a store's newest run, to check that a node has the same store."""
    with store.read() as connection:
        known = list_runs(connection)
    return [known[-1].name, iso(known[-1].created_at)] if known else None


def refuse_unsendable(node: str, targets: Mapping[str, Target]) -> None:
    """Raise InputError for VMs that cannot be sent to a node."""
    for _, error in send_refusals(node, targets):
        raise error


def control_of_mesh(nodes: Mapping[str, str]) -> Path:
    """The socket of the controller's daemon. `nodes` are needed, by VM. Raises InputError without a mesh."""
    try:
        return controller_socket()
    except InputError as error:
        name, node = next(iter(nodes.items()))
        raise InputError(
            f"{name} is reached by the node {node} (vnuma_node). {error.what}",
            fix=f"Run this on the mesh's controller, or on {node} itself with the settings of its node.env: "
            "docs/sites.md.",
        ) from None


def by_node(targets: Mapping[str, Target]) -> dict[str, dict[str, Target]]:
    """The targets that other nodes reach, by node."""
    found: dict[str, dict[str, Target]] = {}
    for name, node in nodes_of(targets).items():
        found.setdefault(node, {})[name] = targets[name]
    return found


def _planned(asking: Asking, wanted: dict[str, Any], ask: Ask) -> Planned:
    """Plan here and on all nodes in parallel."""
    parts = by_node(asking.targets)
    here = asking.here
    if not parts:
        return Planned(plan_all(asking.study, here, asking.permit, asking.inventory))
    if client := asking.study.workload.client_host:
        raise InputError(
            f"SQL Server is called from {client} (workload.client), which no node of "
            "a mesh does for the controller.",
            fix="Run this study on the node itself: docs/sites.md.",
        )
    requests = {node: _request(asking, node, part) | wanted for node, part in parts.items()}
    control = control_of_mesh(asking.nodes)
    asked = {node: _asked(partial(ask, control, node, request)) for node, request in requests.items()}
    own = plan_all(asking.study, here, asking.permit, asking.inventory)
    answers = {node: _read(node, future.result()) for node, future in asked.items()}
    plans = own | plans_of(parts, answers)
    lacking = ", ".join(name for name in asking.targets if name not in plans)
    if lacking:
        raise EnvironmentProblem(f"No node answered about {lacking}.", fix=EQUAL_VERSIONS)
    return Planned(
        {name: plans[name] for name in asking.targets},
        {
            name: client
            for node, one in answers.items()
            for name, client in one.clients.items()
            if name in parts[node]
        },
        [words for one in answers.values() for words in one.said],
    )


def plans_of(parts: Mapping[str, Collection[str]], answers: Mapping[str, Planned]) -> dict[str, TargetPlan]:
    """The nodes' plans, each of its own VMs only, so that no node can vouch for another's."""
    return {
        name: _said_by(node, answers[node].plans[name])
        for node, names in parts.items()
        for name in names
        if name in answers[node].plans
    }


def _asked(ask: Callable[[], dict[str, Any]]) -> Future[dict[str, Any]]:
    """A node's answer, awaited in a daemon thread: Ctrl-C or another node's refusal ends the process."""
    answer: Future[dict[str, Any]] = Future()

    def wait() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:  # noqa: BLE001 - raised where the answer is waited for
            answer.set_exception(error)

    Thread(target=wait, daemon=True).start()
    return answer


def _request(asking: Asking, node: str, part: Mapping[str, Target]) -> dict[str, Any]:
    refuse_unsendable(node, part)
    return {
        **request_about(node, part, asking.inventory),
        "study": asking.text,
        "permit": asdict(asking.permit),
    }


def _read(node: str, answer: dict[str, Any]) -> Planned:
    if "error" in answer:
        raise error_from(node, answer["error"])
    try:
        plans: dict[str, TargetPlan] = {**PLANS.validate_json(answer["plans"])}
        clients = dict.fromkeys(plans, answer["client"]) if answer["client"] else {}
        return Planned(plans, clients, [f"{node}: {words}" for words in answer["said"]])
    except (KeyError, ValidationError):
        raise EnvironmentProblem(
            f"{node} answers in the format of another version of vnuma.", fix=EQUAL_VERSIONS
        ) from None


def _said_by(node: str, plan: TargetPlan) -> TargetPlan:
    """The plan with the node named in blocking findings: VMs of two sites may have the same name.

    Other findings are stored with the run, which knows each VM's node.
    """

    def said(vm: VmPlan) -> TargetPlan:
        findings = (
            replace(one, what=f"{node}: {one.what}") if one.severity == "block" else one
            for one in vm.findings
        )
        return replace(vm, findings=tuple(findings))

    return plan.by_kind(vm=said, machine=lambda machine: machine)
