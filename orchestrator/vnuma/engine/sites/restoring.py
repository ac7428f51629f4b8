"""`vnuma restore` over several sites: a VM is restored from where it is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vnuma.engine.access.inventory import nodes_of, read_targets, stored_target
from vnuma.engine.access.target import Target
from vnuma.engine.lease.supervision import is_alive
from vnuma.engine.mesh.control import ask_node, have_done
from vnuma.engine.mesh.node_files import controller_socket
from vnuma.engine.mesh.request import error_from, request_about
from vnuma.engine.restore.restore_leftovers import (
    RestoreReport,
    Wanted,
    leftover_vms,
    restore_leftovers,
    show_leftovers,
)
from vnuma.engine.sites.planning import PREPARE_S, newest, refuse_unsendable
from vnuma.errors import InputError, NotAtBaseline, VmHeld, VnumaError
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm


@dataclass(frozen=True)
class _Part:
    """VMs of one run that a node reaches, in the same inventory."""

    node: str
    run: Run
    inventory: Path
    targets: dict[str, Target]
    rows: set[int]


def restore_everywhere(store: Store, wanted: Wanted) -> RestoreReport:
    """Restore the VMs that runs have left: here, or by the nodes that reach them.

    Without a mesh here, all are restored from here: another machine of a site replaces its lost node so.
    Raises as `restore_leftovers` does.
    """
    parts = list(_parts(store, wanted))
    report = restore_leftovers(store, _here(parts, wanted))
    for part in parts:
        if is_alive(part.run) and wanted.everything:
            report.problems += [
                VmHeld(f"{name} is in use by {part.run.name}, which is running.") for name in part.targets
            ]
            continue
        try:
            told = _asked(store, part, wanted, show=False)
        except VnumaError as error:
            report.problems.append(_not_restored(part, error))
            continue
        report.done += [f"{words} (by {part.node})" for words in told.get("done", ())]
        report.kept += told.get("kept", ())
        report.problems += [error_from(part.node, problem) for problem in told.get("problems", ())]
    return report


def show_everywhere(store: Store, wanted: Wanted) -> tuple[list[str], list[VnumaError]]:
    """What `restore_everywhere` would change, by line, and the errors of nodes that could not show it.

    Both are empty where nothing needs restoring.
    """
    parts = list(_parts(store, wanted))
    lines, problems = show_leftovers(store, _here(parts, wanted)), []
    for part in parts:
        if is_alive(part.run) and wanted.everything:
            lines += [f"{name} is in use by {part.run.name}, which is running" for name in part.targets]
            continue
        try:
            lines += _asked(store, part, wanted, show=True).get("lines", ())
        except VnumaError as error:
            lines.append(f"{', '.join(part.targets)} ({part.run.name}): {part.node} did not show its changes")
            problems.append(error)
    return lines, problems


def _asked(store: Store, part: _Part, wanted: Wanted, *, show: bool) -> Mapping[str, Any]:
    """The node's answer. Raises the error in it, and EnvironmentProblem without an answer."""
    refuse_unsendable(part.node, part.targets)
    request = {
        **request_about(part.node, part.targets, part.inventory),
        "ask": "restore",
        "newest": newest(store),
        "run": part.run.name,
        "choice": wanted.choice,
        "show": show,
    }
    asked = ask_node if show else have_done
    answer = asked(controller_socket(), part.node, request, PREPARE_S)
    if "error" in answer:
        raise error_from(part.node, answer["error"])
    return answer


def _not_restored(part: _Part, error: VnumaError) -> NotAtBaseline:
    """The error for a node's VMs when the node could not be asked."""
    names = " ".join(part.targets)
    return NotAtBaseline(
        f"{', '.join(part.targets)} may not be at baseline, and only {part.node} reaches it: {error.what}",
        fix=f"{error.fix or 'Fix the cause.'} Or, on another machine of that site with the same store and "
        f"inventory: vnuma restore {names} -i INVENTORY",
    )


def _here(parts: list[_Part], wanted: Wanted) -> Wanted:
    """The VMs that are restored from here, and those whose marks only nodes read."""
    elsewhere = frozenset().union(*(part.rows for part in parts))
    return replace(wanted, elsewhere=elsewhere, unread=_reached_by_nodes(wanted))


def _reached_by_nodes(wanted: Wanted) -> set[str]:
    """The inventory's VMs that nodes reach, if marks on VMs are looked for."""
    if wanted.inventory is None or not wanted.everything or not _has_mesh():
        return set()
    return set(nodes_of(read_targets(wanted.inventory)))


def _parts(store: Store, wanted: Wanted) -> Iterator[_Part]:
    """The parts that nodes have to restore, one for each run and node."""
    if not _has_mesh():
        return
    found: dict[tuple[str, str], _Part] = {}
    for row, owner in leftover_vms(store, wanted):
        place = wanted.inventory_for(owner)
        target = _target(place, row)
        node = nodes_of({row.name: target}).get(row.name) if target else None
        if target and node:
            part = found.setdefault((owner.name, node), _Part(node, owner, place, {}, set()))
            part.targets[row.name] = target
            part.rows.add(row.id)
    yield from found.values()


def _target(inventory: Path, row: Vm) -> Target | None:
    """The VM's target; None if it cannot be read, which its local restore reports."""
    try:
        return stored_target(inventory, row.vm_key, row.name)
    except VnumaError:
        return None


def _has_mesh() -> bool:
    try:
        controller_socket()
    except InputError:
        return False
    return True
