"""The node's side: handle the work units of the controller, with the same engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import study_altered, study_of
from vnuma.engine.access.places import store_url
from vnuma.engine.access.target import Target
from vnuma.engine.doctor.diagnose_site import answer_doctor
from vnuma.engine.lease.supervision import is_worked_on
from vnuma.engine.mesh.request import (
    Request,
    asked_about,
    error_document,
    node_refusals,
    refuse_late,
    refuse_other_clock,
    refuse_other_node,
    refuse_other_version,
    validated,
)
from vnuma.engine.preflight.permit import Permit
from vnuma.engine.preflight.plan_by_kind import plan_all
from vnuma.engine.preflight.vm_plan import VmPlan
from vnuma.engine.restore.restore import Choice
from vnuma.engine.restore.restore_leftovers import Wanted, restore_leftovers, show_leftovers
from vnuma.engine.run.oversight import Work, unwatched
from vnuma.engine.run.recover import restore_after_death
from vnuma.engine.run.start import client_of
from vnuma.engine.run.supervise import supervise
from vnuma.engine.run.unsupervised import settle
from vnuma.engine.sites.planning import PLANS
from vnuma.errors import EnvironmentProblem, InputError, VnumaError, from_os_error
from vnuma.store import runs
from vnuma.store.open import Store, open_store
from vnuma.store.place import parse_place
from vnuma.store.rows import Run
from vnuma.store.types import iso

Document = dict[str, Any]


class _Study(Request):
    study: str
    permit: Permit


class _Prepare(_Study):
    newest: tuple[str, str] | None


class _Run(Request):
    run: tuple[str, str]
    study: str


class _Restore(Request):
    newest: tuple[str, str] | None
    run: str
    choice: Choice
    show: bool


def answer(request: object) -> Document:
    """Do what the controller asks, and return the result; an error is a result too."""
    try:
        asked = dict(validated(request, dict[str, Any]))
        refuse_other_version(asked)
        form, answered = _ANSWERS[validated(asked.get("ask"), Literal[*_ANSWERS])]
        known = dict(validated(asked, form))
        refuse_other_node(known)
        return answered(known)
    except OSError as error:
        return {"error": error_document(from_os_error(error))}
    except VnumaError as error:
        return {"error": error_document(error)}


def _plan(request: Mapping[str, Any]) -> Document:
    """Plan the study on the request's VMs. Changes nothing, and needs no store."""
    with _vms_of(request) as (hosts, targets):
        study = _study(request)
        plans = plan_all(study, targets, request["permit"], hosts)
        vms = {name: plan.by_kind(vm=lambda one: one, machine=_no_machine) for name, plan in plans.items()}
        return {"plans": PLANS.dump_json(vms).decode(), "client": None, "said": []}


def _prepare(request: Mapping[str, Any]) -> Document:
    """Restore what a dead run left of these VMs, then plan the study on them."""
    refuse_other_clock(request)
    store = _shared_store(request.get("newest"))
    with _vms_of(request) as (_, targets):
        said = restore_after_death(store, targets)
        return {**_plan(request), "client": client_of(targets), "said": said}


def _run(request: Mapping[str, Any]) -> Document:
    """The node's part of a run, from taking its VMs over to restoring them. The store has the outcome."""
    store = _shared_store(request["run"])
    with store.read() as connection:
        run = runs.get_run(connection, request["run"][0])
        if runs.get_study(connection, run.study_id).digest != request["study"]:
            raise study_altered(run)
        part, study = runs.at_site(connection, run, request["node"]), study_of(connection, run)
    if run.state.ended or part.site is None:
        raise EnvironmentProblem(
            f"{run.name} has ended, or has no part for this node, so nothing was started here.",
            fix=f"vnuma run --resume {run.name}",
        )
    _refuse_client(study)
    with _vms_of(request) as (hosts, targets):
        ended = supervise(Work(store, store_url(), part, study, targets, hosts), unwatched)
    if not _is_worked_on(store, run):  # the controller has died meanwhile, and no other site is working
        settle(store, run)
    return {"ended": [str(problem) for problem in ended.problems]}


def _is_worked_on(store: Store, run: Run) -> bool:
    with store.read() as connection:
        return is_worked_on(connection, runs.get_run(connection, run.name))


def _restore(request: Mapping[str, Any]) -> Document:
    """Restore what runs left of the request's VMs, or with `show` return what that would change.

    A late request is refused if it carries a decision about others' changes.
    """
    if request["choice"] != "refuse":
        refuse_late(request, f"--{request['choice']}")
    store = _shared_store(request["newest"])
    with _vms_of(request) as (hosts, targets):
        # The request's inventory is removed with the answer.
        wanted = Wanted(list(targets), request["run"], hosts, request["choice"], called="INVENTORY")
        if request["show"]:
            return {"lines": show_leftovers(store, wanted)}
        report = restore_leftovers(store, wanted)
    return {
        "done": report.done,
        "kept": [
            f"{words} (on {request['node']}, or another machine of its site with the same inventory)"
            for words in report.kept
        ],
        "problems": [error_document(problem) for problem in report.problems],
    }


_ANSWERS: Mapping[str, tuple[Any, Callable[[Mapping[str, Any]], Document]]] = {
    "doctor": (Request, answer_doctor),
    "plan": (_Study, _plan),
    "prepare": (_Prepare, _prepare),
    "run": (_Run, _run),
    "restore": (_Restore, _restore),
}
"""By request: its form, and what answers it."""


@contextmanager
def _vms_of(request: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Target]]]:
    """The request's inventory and VMs. Raises InputError for what a node refuses."""
    with asked_about(request) as (hosts, targets):
        for _, error in node_refusals(targets):
            raise error
        yield hosts, targets


def _study(request: Mapping[str, Any]) -> Study:
    study = parse_study(request["study"], "the controller's study")
    _refuse_client(study)
    return study


def _refuse_client(study: Study) -> None:
    """Refuse a client machine: its connection variables could name a program to start here."""
    if study.workload.client_host:
        raise InputError(
            "SQL Server is called from another machine (workload.client): a node does not for a controller.",
            fix="Run the study on the node itself.",
        )


def _no_machine(_plan: object) -> VmPlan:
    raise InputError("A node plans only VMs for the controller.", fix="Run the study on the node itself.")


def _shared_store(known: tuple[str, str] | None) -> Store:
    """This node's store, which must be the controller's. `known`: a run of the controller, and its time.

    Raises EnvironmentProblem where it is another store, StoreError where it does not answer.
    """
    url = store_url()
    place = parse_place(url)
    if place.is_sqlite:
        raise EnvironmentProblem(
            f"store {place} is a file on the node: sites share one PostgreSQL.",
            fix="Set VNUMA_STORE in the node's node.env, then restart its daemon.",
        )
    store = open_store(url, create=False)
    with store.read() as connection:
        here = {(run.name, iso(run.created_at)) for run in runs.list_runs(connection)}
    if known and known not in here:
        raise EnvironmentProblem(
            f"store {place} is another one than the controller's: it does not have {known[0]}.",
            fix="Let VNUMA_STORE in the node's node.env name the controller's store.",
        )
    return store
